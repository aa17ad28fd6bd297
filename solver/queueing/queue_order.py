"""Which queue is next among gangs of one priority, and who may join a batch.

Queues within their own quota come before those that borrow; of those that borrow the
one with the smaller dominant share, by its weight, comes first: at each level of their
cohorts, as if the gang were in. Then the older gang. Gangs without a queue borrow
nothing. What the gangs of the batch ask for counts as used.

Source: Kueue's concept "Fair sharing" and KEP-1714, the tournament.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from contracts.features import Features
from contracts.ids import GangKey
from contracts.kueue import ClusterQueue
from contracts.lifecycle import GangRecord
from solver.cache import Cache
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import GangPart
from solver.problem.quota.asked import Asked, count_asked
from solver.problem.quota.flavors import (
    Flavors,
    Shortage,
    Suiting,
    choose_flavors,
    list_suiting,
)
from solver.problem.quota.tree import (
    Amounts,
    NodeKey,
    QuotaLedger,
    QuotaNode,
    QuotaShare,
)
from solver.queueing.contests import WITHIN, Head, Tournament
from solver.queueing.turns import LineName, RankLines
from solver.snapshot.snapshot import Snapshot

NOT_FITTING = QuotaShare(borrows=True, is_weightless=True, ratio=1 << 200)
"""Of a gang for which no quota suffices: after all others, to be told so."""
MOST_KNOWN = 8192
"""Gangs that are remembered."""


class _Wanted(Struct, frozen=True):
    """What a gang asks for of the quotas of its queue."""

    gang: GangPart
    queue: ClusterQueue
    suiting: Suiting
    asked: Asked


class _GangAsked(Struct, frozen=True):
    """What a gang asked for when it was looked at last."""

    record: GangRecord
    wanted: _Wanted | None


class _Sight(Struct, frozen=True):
    """How a gang stood when it was looked at last."""

    wanted: _Wanted
    used: Amounts | None
    """By its queue; None: it must be looked at again in any case."""
    amounts: Amounts
    """What it would take; none where no quota suffices."""
    short: Amounts
    """The quota that did not suffice, where no other flavor could."""
    fits: bool
    """True if some quota suffices."""

    def holds(self, wanted: _Wanted, ledger: QuotaLedger, node: QuotaNode) -> bool:
        """True if the gang stands now as it did."""
        if self.wanted is not wanted or self.used is None:
            return False
        if self.used != ledger.amounts_of(node) or not (self.amounts or self.short):
            return False
        return all(
            ledger.available(node, quota) >= amount
            for quota, amount in self.amounts.items()
        ) and all(
            ledger.available(node, quota) < amount
            for quota, amount in self.short.items()
        )


class GangsAsked:
    """What gangs ask for, from one batch to the next."""

    def __init__(self) -> None:
        self._facts: tuple[object, ...] = ()
        self._kept: tuple[object, ...] = ()
        self._gangs: Cache[GangKey, _GangAsked] = Cache(MOST_KNOWN)
        self.sights: Cache[GangKey, _Sight] = Cache(MOST_KNOWN)

    def of(self, snapshot: Snapshot, features: Features) -> Cache[GangKey, _GangAsked]:
        """Return what is known of gangs; nothing where other objects count now."""
        classes = tuple(snapshot.inventory.pages.of(""))
        facts = (features, id(snapshot.queues), id(snapshot.templates), classes)
        if facts != self._facts:
            # The objects are kept, so that no others get their ids.
            self._kept = (snapshot.queues, snapshot.templates)
            self._facts = facts
            self._gangs = Cache(MOST_KNOWN)
            self.sights = Cache(MOST_KNOWN)
        return self._gangs


_KNOWN = GangsAsked()


def _guess() -> tuple[QuotaShare, ...]:
    """Return the least shares that a gang may have."""
    return (WITHIN,)


def _not_fitting(node: QuotaNode) -> tuple[QuotaShare, ...]:
    return (NOT_FITTING,) * max(len(node.path) - 1, 1)


def _names_claims(record: GangRecord) -> bool:
    """True if a gang names ResourceClaims, which change and are held by others."""
    return record.submission is None or bool(record.submission.gang.named_claims)


class QueueOrder:
    """The order of queues during one batch."""

    def __init__(self, snapshot: Snapshot, features: Features) -> None:
        self._snapshot = snapshot
        self._features = features
        self.ledger = QuotaLedger(snapshot)
        self._before: QuotaLedger | None = None
        self._tournaments: dict[int, tuple[RankLines, Tournament]] = {}
        """Of the lines that were picked from; by their id, which they are kept for."""
        self._has_namespaces = False
        self._wanted: dict[GangKey, _Wanted | None] = {}
        self._known = _KNOWN.of(snapshot, features)
        self._sights = _KNOWN.sights
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

    def pick(self, lines: RankLines) -> LineName:
        """Choose the line of a rank whose turn it is."""
        known = self._tournaments.get(id(lines))
        if known is None or known[1].added != lines.added:
            known = (lines, self._begin(lines))
            self._tournaments[id(lines)] = known
        _, tournament = known
        for line in sorted(tournament.stale):
            self._refresh(tournament, lines, line)
        tournament.stale.clear()
        if self._has_namespaces:
            self._put_namespace(tournament, lines)
        while (best := tournament.best()) is not None:
            if not tournament.heads[best].is_guess:
                # It is taken, or passed over.
                tournament.stale.add(best)
                return best
            self._refresh(tournament, lines, best)
        raise LookupError

    def _begin(self, lines: RankLines) -> Tournament:
        """Put all queues up: those of flat trees with the least shares they may have.

        In others the candidate of a cohort must be known before it is compared.
        """
        tournament = Tournament()
        tournament.added, self._has_namespaces = lines.added, False
        for line in lines:
            name, _ = line
            node = self.ledger.tree.queues.get(name)
            if not name:
                self._has_namespaces = True
            elif node is None or node.parent is None or node.parent.parent is None:
                age, gang = lines.head(line)
                tournament.put(line, Head(gang, age, node, _guess, is_guess=True))
            else:
                self._refresh(tournament, lines, line)
        return tournament

    def _put_namespace(self, tournament: Tournament, lines: RankLines) -> None:
        """Put up the namespace whose turn it is, of gangs without a queue."""
        for line in [line for line in tournament.heads if not line[0]]:
            tournament.remove(line)
        first = next((line for line in lines if not line[0]), None)
        if first is not None:
            age, gang = lines.head(first)
            tournament.put(first, Head(gang, age, None, tuple))

    def _refresh(
        self, tournament: Tournament, lines: RankLines, line: LineName
    ) -> None:
        if line not in lines:
            tournament.remove(line)
        elif line[0]:
            age, gang = lines.head(line)
            tournament.put(line, self._look_at(gang, age, line))

    def _look_at(self, gang: GangKey, age: int, line: LineName) -> Head:
        record = self._snapshot.gangs.get(gang)
        node = self.ledger.tree.queues.get(line[0])
        wanted = None if record is None else self._find_wanted(record)
        if wanted is None or node is None:
            return Head(gang, age, node, tuple)
        sight = self._sights.get(gang)
        if sight is None or not sight.holds(wanted, self.ledger, node):
            sight = self._sights.keep(gang, self._see(wanted, node))
        for quota, amount in sight.amounts.items():
            self._most[quota] = max(self._most.get(quota, 0), amount)
        if not sight.fits:
            return Head(gang, age, node, partial(_not_fitting, node))
        shares = partial(self.ledger.shares, node, sight.amounts)
        return Head(gang, age, node, shares)

    def _see(self, wanted: _Wanted, node: QuotaNode) -> _Sight:
        ledger, first = self.ledger, self.ledger.amounts_of(node)
        found = self._choose(ledger, wanted)
        if isinstance(found, Shortage):
            has_one = all(len(names) <= 1 for names in wanted.suiting)
            short = {(found.flavor, found.resource): found.asked}
            return _Sight(wanted, first, {}, short if has_one else {}, fits=False)
        is_first = all(
            found.by_resource.get(resource, names[0] if names else "") == names[0]
            for group, names in zip(
                wanted.queue.spec.resource_groups, wanted.suiting, strict=True
            )
            for resource in group.covered_resources
            if names
        )
        lasts = (is_first and not found.borrows) or all(
            len(names) <= 1 for names in wanted.suiting
        )
        return _Sight(wanted, first if lasts else None, found.amounts, {}, fits=True)

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
        gang, node = wanted.gang, self.ledger.tree.queues[wanted.queue.metadata.name]
        root = node.path[-1]
        if root.key in self._closed:
            return False
        found = self._choose(self.ledger, wanted)
        if not isinstance(found, Shortage):
            self._take(node, found.amounts)
            return True
        if self._before is None:
            self._before = QuotaLedger(self._snapshot)
        asked = wanted.asked
        if gang.is_in and gang.queue is not None:
            asked = count_asked(gang.with_extra(1), gang.queue)
        if isinstance(self._choose(self._before, wanted, asked), Shortage):
            return True
        if not gang.is_in or root.key in self._asking:
            return False
        self._closed.add(root.key)
        return True

    def _take(self, node: QuotaNode, amounts: Amounts) -> None:
        """Count what a gang asks for, and look again at those whom that concerns."""
        self.ledger.add(node, amounts)
        path = node.path
        root = path[-1]
        self._asking.add(root.key)
        is_scarce = any(
            self.ledger.available(each, quota) < self._most.get(quota, 0)
            for each in path[1:]
            for quota in amounts
        )
        # Where much is left, the others have what they ask for as before, and of their
        # cohorts only those of this queue have other shares.
        for _, tournament in self._tournaments.values():
            tournament.mark_stale(root if is_scarce else node)
            tournament.compare_again(node)

    def _choose(
        self, ledger: QuotaLedger, wanted: _Wanted, asked: Asked | None = None
    ) -> Flavors | Shortage:
        asks = wanted.asked if asked is None else asked
        return choose_flavors(ledger, wanted.queue, wanted.suiting, asks)

    def _find_wanted(self, record: GangRecord) -> _Wanted | None:
        """Return what a gang asks for; None: nothing that a quota counts."""
        if record.key in self._wanted:
            return self._wanted[record.key]
        known = self._known.get(record.key)
        if known is None or known.record is not record:
            known = _GangAsked(record=record, wanted=self._count_wanted(record))
            if not _names_claims(record):
                self._known.keep(record.key, known)
        self._wanted[record.key] = known.wanted
        return known.wanted

    def _count_wanted(self, record: GangRecord) -> _Wanted | None:
        if not self.has_queues:
            return None
        try:
            (gang,) = resolve_gangs(self._snapshot, [record], self._features)
        except Exception:  # noqa: BLE001 # who cannot be read fails alone, in its solve
            return None
        if gang.refused or gang.queue is None:
            return None
        objects, part = self._snapshot.queues, gang.queue
        queue = objects.cluster_queues.get(part.name)
        if queue is None:
            return None
        asked = count_asked(gang if gang.is_in else gang.core, part)
        return _Wanted(gang, queue, list_suiting(objects, queue, gang), asked)
