"""Who lends to whom: ClusterQueues and Cohorts with their quotas, and what is used.

Amounts are by flavor and resource: cpu in thousandths, all others in whole units. What
a node uses beyond what it keeps for itself counts for its cohort, and so on upwards.

Source: Kueue's concepts "ClusterQueue", "Cohort" and "Fair sharing"; KEP-79
(hierarchical cohorts), KEP-1714 (fair sharing).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from contracts.kueue import FairSharing, ResourceGroup
from contracts.pods.node_resources import count_allocatable
from contracts.quantity import NANO
from solver.cache import Last
from solver.problem.problem import QuotaPart
from solver.snapshot.queues import QueueObjects
from solver.snapshot.snapshot import Snapshot

FlavorResource = tuple[str, str]
Amounts = dict[FlavorResource, int]
NodeKey = tuple[bool, str]
"""True for a cohort, and its name."""
SHARE_UNIT = NANO
"""Of a share: so many are all that can be lent."""


class QuotaShare(Struct, frozen=True, order=True):
    """How much a node borrows; who borrows less comes first."""

    borrows: bool = False
    """True if it borrows something that is asked for."""
    is_weightless: bool = False
    """True if it borrows with weight 0: everybody else comes first."""
    ratio: int = 0
    """The largest part of what can be lent that it borrows, by its weight."""


class QuotaNode:
    """A ClusterQueue or a Cohort."""

    __slots__ = (
        "_path",
        "borrowing",
        "children",
        "key",
        "lendable",
        "lending",
        "parent",
        "subtree",
        "weight_nano",
    )

    def __init__(
        self, key: NodeKey, groups: Iterable[ResourceGroup], sharing: FairSharing
    ) -> None:
        self.key = key
        self.parent: QuotaNode | None = None
        self.children: list[QuotaNode] = []
        self._path: tuple[QuotaNode, ...] = ()
        self.subtree: Amounts = {}
        """Its own nominal quotas, and all that its children lend."""
        self.borrowing: Amounts = {}
        """Limits; without one it borrows whatever there is."""
        self.lending: Amounts = {}
        """Limits; without one it lends everything."""
        self.lendable: dict[str, int] = {}
        """Of a cohort: all that one of its children could get, by resource."""
        weight = sharing.weight
        self.weight_nano = NANO if weight is None else max(weight.nano, 0)
        for group in groups:
            for flavor in group.flavors:
                for each in flavor.resources:
                    quota = (flavor.name, each.name)
                    self.subtree[quota] = _units_of(each.name, each.nominal_quota)
                    if each.borrowing_limit is not None:
                        limit = _units_of(each.name, each.borrowing_limit)
                        self.borrowing[quota] = limit
                    if each.lending_limit is not None:
                        limit = _units_of(each.name, each.lending_limit)
                        self.lending[quota] = limit

    def kept(self, quota: FlavorResource) -> int:
        """Return how much of a quota it never lends."""
        limit = self.lending.get(quota)
        return 0 if limit is None else max(self.subtree.get(quota, 0) - limit, 0)

    @property
    def path(self) -> tuple[QuotaNode, ...]:
        """The node, its cohort, and so on up to the root."""
        if not self._path:
            above = () if self.parent is None else self.parent.path
            self._path = (self, *above)
        return self._path

    def potential(self, quota: FlavorResource) -> int:
        """Return how much it could use if nobody used anything."""
        own = self.subtree.get(quota, 0)
        if self.parent is None:
            return own
        most = self.kept(quota) + self.parent.potential(quota)
        limit = self.borrowing.get(quota)
        return most if limit is None else min(own + limit, most)


def _units_of(resource: str, amount: object) -> int:
    return count_allocatable({resource: amount})[resource]  # type: ignore[dict-item]  # a Quantity


class QuotaTree:
    """All queues and cohorts; a queue whose cohorts have no root is left out."""

    def __init__(self, objects: QueueObjects) -> None:
        self.queues: dict[str, QuotaNode] = {}
        self.cohorts: dict[str, QuotaNode] = {}
        for name in sorted(objects.cluster_queues):
            queue, above = objects.cluster_queues.get(name), objects.list_cohorts(name)
            if queue is None or above is None:
                continue
            spec = queue.spec
            node = QuotaNode((False, name), spec.resource_groups, spec.fair_sharing)
            self.queues[name] = node
            self._join(node, above, objects)
        for name in sorted(objects.cohorts):
            above = objects.list_above(name)
            if above is not None and name not in self.cohorts:
                self._join(None, above, objects)
        for root in self.cohorts.values():
            if root.parent is None:
                _sum_up(root)
                _note_lendable(root, list(root.subtree))

    def _join(
        self, node: QuotaNode | None, above: Iterable[str], objects: QueueObjects
    ) -> None:
        """Put a node below its cohorts, the nearest first."""
        for name in above:
            known = self.cohorts.get(name)
            parent = known or _make_cohort(name, objects)
            self.cohorts[name] = parent
            if node is not None:
                node.parent = parent
                parent.children.append(node)
            if known is not None:
                break
            node = parent


def _make_cohort(name: str, objects: QueueObjects) -> QuotaNode:
    known = objects.cohorts.get(name)
    if known is None:
        return QuotaNode((True, name), (), FairSharing())
    spec = known.spec
    return QuotaNode((True, name), spec.resource_groups, spec.fair_sharing)


def _sum_up(node: QuotaNode) -> None:
    for child in node.children:
        _sum_up(child)
        for quota, amount in child.subtree.items():
            lent = amount - child.kept(quota)
            node.subtree[quota] = node.subtree.get(quota, 0) + lent


def _note_lendable(node: QuotaNode, quotas: list[FlavorResource]) -> None:
    for quota in quotas if node.children else ():
        _, resource = quota
        most = node.lendable.get(resource, 0) + node.potential(quota)
        node.lendable[resource] = most
    for child in node.children:
        _note_lendable(child, quotas)


_TREE: Last[QueueObjects, QuotaTree] = Last()


def tree_of(objects: QueueObjects) -> QuotaTree:
    """Return the tree of all queues; made once for the same objects."""
    found = _TREE.get(objects)
    return found if found is not None else _TREE.keep(objects, QuotaTree(objects))


class QuotaLedger:
    """What is used of all quotas, by gangs with a place and by those of a batch."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.tree = tree_of(snapshot.queues)
        self._used: dict[NodeKey, Amounts] = {}
        for name, amounts in snapshot.held.items():
            node = self.tree.queues.get(name)
            if node is not None:
                self.add(node, amounts)

    def used(self, node: QuotaNode, quota: FlavorResource) -> int:
        """Return how much a node uses of a quota."""
        amounts = self._used.get(node.key)
        return 0 if amounts is None else amounts.get(quota, 0)

    def amounts_of(self, node: QuotaNode) -> Amounts:
        """Return all that a node uses, as it is now."""
        return dict(self._used.get(node.key, {}))

    def add(self, node: QuotaNode, amounts: Mapping[FlavorResource, int]) -> None:
        """Let a queue use so much more."""
        for quota, amount in amounts.items():
            self._add(node, quota, amount)

    def _add(self, node: QuotaNode, quota: FlavorResource, amount: int) -> None:
        beyond = amount - self._left_of_kept(node, quota)
        used = self._used.setdefault(node.key, {})
        used[quota] = used.get(quota, 0) + amount
        if node.parent is not None and beyond > 0:
            self._add(node.parent, quota, beyond)

    def _left_of_kept(self, node: QuotaNode, quota: FlavorResource) -> int:
        return max(node.kept(quota) - self.used(node, quota), 0)

    def available(self, node: QuotaNode, quota: FlavorResource) -> int:
        """Return how much more a node may use; negative where it uses too much."""
        own, used = node.subtree.get(quota, 0), self.used(node, quota)
        if node.parent is None:
            return own - used
        above = self.available(node.parent, quota)
        limit = node.borrowing.get(quota)
        if limit is not None:
            kept = node.kept(quota)
            above = min(above, own - kept - max(used - kept, 0) + limit)
        return self._left_of_kept(node, quota) + above

    def borrows(self, node: QuotaNode, amounts: Mapping[FlavorResource, int]) -> bool:
        """True if a queue would use more than its own quota with so much more."""
        return any(
            self.used(node, quota) + amount > node.subtree.get(quota, 0)
            for quota, amount in amounts.items()
            if amount
        )

    def share(
        self, node: QuotaNode, amounts: Mapping[FlavorResource, int]
    ) -> QuotaShare:
        """Return the dominant share of a node with so much more."""
        parent = node.parent
        if parent is None:
            return QuotaShare()
        borrowed, borrows = dict[str, int](), False
        for quota, own in node.subtree.items():
            asked = amounts.get(quota, 0)
            beyond = self.used(node, quota) + asked - own
            if beyond > 0:
                _, resource = quota
                borrowed[resource] = borrowed.get(resource, 0) + beyond
                borrows = borrows or asked > 0
        weight, ratio = node.weight_nano or NANO, 0
        for resource, amount in borrowed.items():
            most = parent.lendable.get(resource, 0)
            if most > 0:
                ratio = max(ratio, amount * SHARE_UNIT * NANO // (most * weight))
        return QuotaShare(borrows, ratio > 0 and not node.weight_nano, ratio)

    def shares(
        self, node: QuotaNode, amounts: Mapping[FlavorResource, int]
    ) -> tuple[QuotaShare, ...]:
        """Return the shares of a queue and its cohorts, the root left out, likewise."""
        found, asked = [], dict(amounts)
        for each in node.path:
            if each.parent is None:
                break
            found.append(self.share(each, asked))
            beyond = {q: a - self._left_of_kept(each, q) for q, a in asked.items()}
            asked = {quota: amount for quota, amount in beyond.items() if amount > 0}
        return tuple(found)

    def record(self, queues: Iterable[str]) -> tuple[QuotaPart, ...]:
        """Record the quotas of some queues, and those of their cohorts."""
        nodes = {
            node.key: node
            for name in queues
            if name in self.tree.queues
            for node in self.tree.queues[name].path
        }
        return tuple(
            QuotaPart(
                name=key[1],
                is_cohort=key[0],
                parent="" if node.parent is None else node.parent.key[1],
                flavor=quota[0],
                resource=quota[1],
                quota=amount,
                borrowing_limit=node.borrowing.get(quota),
                lending_limit=node.lending.get(quota),
                used=self.used(node, quota),
            )
            for key, node in sorted(nodes.items())
            for quota, amount in sorted(node.subtree.items())
        )
