"""Which queue is next among gangs of one priority, and who may join a batch.

Queues within their own quota come before those that borrow; of those that borrow the
one with the smaller dominant share, by its weight, comes first: at each level of their
cohorts, as if the gang were in. Then the older gang. Gangs without a queue borrow
nothing. What the gangs of the batch ask for counts as used.

Source: Kueue's concept "Fair sharing" and KEP-1714, the tournament.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from contracts.features import Features
from contracts.ids import GangKey, Namespace
from contracts.lifecycle import GangRecord
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import GangPart
from solver.problem.quota.asked import Asked, count_asked
from solver.problem.quota.flavors import Flavors, Shortage, choose_flavors
from solver.problem.quota.tree import (
    Amounts,
    NodeKey,
    QuotaLedger,
    QuotaNode,
    QuotaShare,
)
from solver.queueing.turns import LineName, Ticket
from solver.snapshot.snapshot import Snapshot

Urgency = tuple[QuotaShare, int, GangKey]
"""A share, the age of the gang, and which it is: the smaller comes first."""
NOT_FITTING = QuotaShare(borrows=True, is_weightless=True, ratio=1 << 200)
"""Of a gang for which no quota suffices: after all others, to be told so."""
WITHIN = QuotaShare()
NOWHERE = Namespace("")


class _Head(Struct):
    """The first gang of a line, as it was looked at last."""

    gang: GangKey
    age: int
    node: QuotaNode | None
    shares: tuple[QuotaShare, ...]
    """Of its queue and the cohorts of that, the root left out; of one that does not
    fit or has no queue a single one."""
    is_stale: bool = False

    @property
    def top(self) -> QuotaShare:
        """The share by which it is compared with those of other trees."""
        return self.shares[-1] if self.shares else WITHIN


class QueueOrder:
    """The order of queues during one batch."""

    def __init__(self, snapshot: Snapshot, features: Features) -> None:
        self._snapshot = snapshot
        self._features = features
        self.ledger = QuotaLedger(snapshot)
        self._before: QuotaLedger | None = None
        self._heads: dict[LineName, _Head] = {}
        self._wanted: dict[GangKey, tuple[GangPart, Asked] | None] = {}
        self._asking: set[NodeKey] = set()
        """Trees of whose queues the batch has gangs."""
        self._closed: set[NodeKey] = set()
        """Trees of which one gang takes as much as there is."""
        self._most: Amounts = {}
        """The most of each quota that a head asks for."""

    @property
    def has_queues(self) -> bool:
        """True if there is any ClusterQueue."""
        return bool(self.ledger.tree.queues)

    # --- who is next -----------------------------------------------------------------

    def pick(self, heads: Mapping[LineName, Ticket]) -> LineName:
        """Choose among the first gangs of lines of one priority."""
        best: dict[NodeKey, LineName] = {}
        by_root: dict[NodeKey, list[LineName]] = {}
        for line, ticket in heads.items():
            head = self._heads.get(line)
            if head is None or head.is_stale or head.gang != ticket.gang:
                head = self._heads[line] = self._look_at(ticket)
            by_root.setdefault(_root_of(head.node), []).append(line)
        for root, lines in by_root.items():
            best[root] = self._run_tournament(lines)
        return min(best.values(), key=lambda line: _by_share(self._heads[line], -1))

    def _run_tournament(self, lines: list[LineName]) -> LineName:
        """Choose among the lines of one tree, level by level from the leaves up."""
        heads = [(self._heads[line], line) for line in lines]
        if all(head.node is None or len(head.shares) < 2 for head, _ in heads):
            return min(heads, key=lambda each: _by_share(each[0], 0))[1]
        # Each node has one candidate; the deepest parents decide first.
        candidates: dict[NodeKey, list[tuple[_Head, int, LineName]]] = {}
        depths: dict[NodeKey, tuple[int, QuotaNode]] = {}
        lone: list[tuple[_Head, LineName]] = []
        for head, line in heads:
            path = [] if head.node is None else list(head.node.path())
            if len(path) < 2:
                lone.append((head, line))
                continue
            for depth, node in enumerate(reversed(path[1:])):
                depths[node.key] = (depth, node)
            candidates.setdefault(path[1].key, []).append((head, 0, line))
        for _, node in sorted(
            depths.values(), key=lambda each: (-each[0], each[1].key)
        ):
            found = candidates.pop(node.key, None)
            if not found:
                continue
            head, level, line = min(found, key=lambda each: _by_share(each[0], each[1]))
            if node.parent is None:
                lone.append((head, line))
            else:
                above = candidates.setdefault(node.parent.key, [])
                above.append((head, level + 1, line))
        return min(lone, key=lambda each: _by_share(each[0], -1))[1]

    def _look_at(self, ticket: Ticket) -> _Head:
        record = self._snapshot.gangs.get(ticket.gang)
        wanted = None if record is None else self._find_wanted(record)
        head = _Head(ticket.gang, ticket.age, None, ())
        if wanted is None:
            return head
        gang, asked = wanted
        node = self.ledger.tree.queues[gang.queue.name] if gang.queue else None
        found = self._choose(self.ledger, gang, asked)
        if node is None or isinstance(found, Shortage):
            return _Head(ticket.gang, ticket.age, node, (NOT_FITTING,))
        for quota, amount in found.amounts.items():
            self._most[quota] = max(self._most.get(quota, 0), amount)
        shares = self.ledger.shares(node, found.amounts)
        return _Head(ticket.gang, ticket.age, node, shares)

    # --- who may join the batch ------------------------------------------------------

    def takes(self, record: GangRecord) -> bool:
        """Take a gang into the batch; False: it is for a later one.

        So nobody is refused for what others only ask for. Who asks for more than is
        left by what is held comes in all the same, to be told. One that is in already,
        and may have a part of what it asks for, comes as the only one that asks.
        """
        wanted = self._find_wanted(record)
        if wanted is None:
            return True
        gang, asked = wanted
        queue = gang.queue
        if queue is None:
            return True
        node = self.ledger.tree.queues[queue.name]
        *_, root = node.path()
        if root.key in self._closed:
            return False
        found = self._choose(self.ledger, gang, asked)
        if not isinstance(found, Shortage):
            self._take(node, found.amounts)
            return True
        if self._before is None:
            self._before = QuotaLedger(self._snapshot)
        least = count_asked(gang.with_extra(1), queue) if gang.is_in else asked
        if isinstance(self._choose(self._before, gang, least), Shortage):
            return True
        if not gang.is_in or root.key in self._asking:
            return False
        self._closed.add(root.key)
        return True

    def _take(self, node: QuotaNode, amounts: Amounts) -> None:
        """Count what a gang asks for, and look again at those whom that concerns."""
        self.ledger.add(node, amounts)
        own = self._heads.get((node.key[1], NOWHERE))
        if own is not None:
            own.is_stale = True
        *_, root = node.path()
        self._asking.add(root.key)
        is_flat = node is root or node.parent is root
        if is_flat and not any(
            self.ledger.available(root, quota) < self._most.get(quota, 0)
            for quota in amounts
        ):
            return  # of the others, each has what it asks for as before
        for head in self._heads.values():
            if head.node is not None and _root_of(head.node) == root.key:
                head.is_stale = True

    def _choose(
        self, ledger: QuotaLedger, gang: GangPart, asked: Asked
    ) -> Flavors | Shortage:
        objects, part = self._snapshot.queues, gang.queue
        queue = None if part is None else objects.cluster_queues.get(part.name)
        if queue is None:
            return Flavors()
        return choose_flavors(ledger, objects, queue, gang, asked)

    def _find_wanted(self, record: GangRecord) -> tuple[GangPart, Asked] | None:
        """Return what a gang asks for; None: nothing that a quota counts."""
        if record.key not in self._wanted:
            self._wanted[record.key] = self._count_wanted(record)
        return self._wanted[record.key]

    def _count_wanted(self, record: GangRecord) -> tuple[GangPart, Asked] | None:
        if not self.has_queues:
            return None
        try:
            (gang,) = resolve_gangs(self._snapshot, [record], self._features)
        except Exception:  # noqa: BLE001 # who cannot be read fails alone, in its solve
            return None
        if gang.refused or gang.queue is None:
            return None
        return gang, count_asked(gang if gang.is_in else gang.core, gang.queue)


def _by_share(head: _Head, level: int) -> Urgency:
    """Order gangs by the share of the node that they stand for at a level."""
    if level < 0 or level >= len(head.shares):
        return (head.top, head.age, head.gang)
    return (head.shares[level], head.age, head.gang)


def _root_of(node: QuotaNode | None) -> NodeKey:
    """Name the tree of a node; those without a cohort are all of one."""
    if node is None or node.parent is None:
        return (False, "")
    *_, root = node.path()
    return root.key
