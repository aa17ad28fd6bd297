"""Queues with larger quotas: the least that a gang is short of, and a cluster so. Pure.

Counted as quotas are counted when a gang is tried, in `solver/problem/quota`: less by
one unit is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice, product

from msgspec import Struct, structs

from contracts.counts import listed
from contracts.kueue import (
    ClusterQueue,
    Cohort,
    FlavorQuotas,
    ResourceAmounts,
    ResourceGroup,
)
from contracts.pods.node_resources import CPU, MILLI
from contracts.quantity import NANO, Quantity
from solver.problem.gangs import GangPart
from solver.problem.quota.asked import count_asked
from solver.problem.quota.flavors import list_suiting
from solver.problem.quota.quotas import write_amount
from solver.problem.quota.tree import FlavorResource, QuotaLedger, QuotaNode
from solver.snapshot.snapshot import Snapshot, observe

MOST_CHOICES = 4
"""Choices of flavors for which quota is counted."""


class QuotaRaise(Struct, frozen=True, kw_only=True):
    """A larger quota of one resource, cpu in thousandths."""

    name: str
    """Of a ClusterQueue or a Cohort."""
    is_cohort: bool = False
    flavor: str
    resource: str
    is_limit: bool = False
    """True: its borrowing limit; else its nominal quota."""
    amount: int
    instead_of: int

    def __str__(self) -> str:
        new, old = self.write(self.amount), self.write(self.instead_of)
        return f"{new} instead of {old} {self.resource} of flavor {self.flavor}"

    @property
    def kind(self) -> str:
        """The kind of the object that has it."""
        return "Cohort" if self.is_cohort else "ClusterQueue"

    @property
    def whose(self) -> str:
        """What is larger, without its amount, for people."""
        verb = "may borrow" if self.is_limit else "has a quota of"
        return f"{self.kind} {self.name} {verb}"

    def write(self, amount: int) -> str:
        """Write an amount of it as Kubernetes does."""
        return write_amount(self.resource, amount)


Raises = tuple[QuotaRaise, ...]


def describe_raises(raises: Sequence[QuotaRaise]) -> str:
    """Say what would be larger, for people."""
    return listed(
        [
            f"{whose} {listed([str(each) for each in of_one])}"
            for whose, of_one in groupby(raises, key=lambda each: each.whose)
        ]
    )


# --- the least -----------------------------------------------------------------------


def list_raises(snapshot: Snapshot, gang: GangPart) -> list[Raises]:
    """List what would be enough quota for a gang, each alone: the least of its kind.

    For each flavor that its pods may be of, its ClusterQueue's own quota, and what that
    may borrow where its cohort has enough. Empty: quota does not refuse it.
    """
    part, core = gang.queue, gang.core
    queue = None if part is None else snapshot.queues.cluster_queues.get(part.name)
    ledger = QuotaLedger(snapshot)
    node = None if part is None else ledger.tree.queues.get(part.name)
    if gang.refused or part is None or queue is None or node is None:
        return []
    asked = count_asked(core, part)
    short = list[list[dict[FlavorResource, int]]]()
    suiting = list_suiting(snapshot.queues, queue, core)
    for group, flavors in zip(queue.spec.resource_groups, suiting, strict=True):
        wanted = {r: asked[r] for r in group.covered_resources if asked.get(r)}
        choices = [_list_short(ledger, node, flavor, wanted) for flavor in flavors]
        if wanted and all(choices):
            short.append(choices)
    if not short:
        return []
    found = list[Raises]()
    for chosen in islice(product(*short), MOST_CHOICES):
        together = {quota: n for of_group in chosen for quota, n in of_group.items()}
        found += [_raise_own(ledger, node, together)]
        found += [_raise_limits(ledger, node, together)]
    return [raises for raises in found if raises]


def _list_short(
    ledger: QuotaLedger, node: QuotaNode, flavor: str, wanted: Mapping[str, int]
) -> dict[FlavorResource, int]:
    """List what is asked for of a flavor that has less left."""
    return {
        (flavor, resource): amount
        for resource, amount in wanted.items()
        if amount > ledger.available(node, (flavor, resource))
    }


def _raise_own(
    ledger: QuotaLedger, node: QuotaNode, short: Mapping[FlavorResource, int]
) -> Raises:
    """Raise the nominal quotas of a ClusterQueue to what is enough."""
    found = list[QuotaRaise]()
    for quota, needed in short.items():
        own = node.subtree.get(quota, 0)
        more = needed - ledger.available(node, quota)
        found.append(_make_raise(node, quota, own, own + more))
    return tuple(found)


def _raise_limits(
    ledger: QuotaLedger, node: QuotaNode, short: Mapping[FlavorResource, int]
) -> Raises:
    """Raise borrowing limits to what is enough; empty: others have too little."""
    found = list[QuotaRaise]()
    for quota, needed in short.items():
        raises = _raise_limits_of(ledger, node, quota, needed)
        if not raises:
            return ()
        found += raises
    return tuple(found)


def _raise_limits_of(
    ledger: QuotaLedger, node: QuotaNode, quota: FlavorResource, needed: int
) -> list[QuotaRaise]:
    """Go up the cohorts; `QuotaLedger.available`, solved for the limits."""
    found = list[QuotaRaise]()
    for each in node.path:
        own, used = each.subtree.get(quota, 0), ledger.used(each, quota)
        if each.parent is None:
            return found if needed <= own - used else []
        kept, limit = each.kept(quota), each.borrowing.get(quota)
        needed -= max(kept - used, 0)
        least = needed - (own - kept - max(used - kept, 0))
        if limit is not None and least > limit:
            found.append(_make_raise(each, quota, limit, least, is_limit=True))
    return []


def _make_raise(
    node: QuotaNode,
    quota: FlavorResource,
    old: int,
    new: int,
    *,
    is_limit: bool = False,
) -> QuotaRaise:
    is_cohort, name = node.key
    flavor, resource = quota
    return QuotaRaise(
        name=name,
        is_cohort=is_cohort,
        flavor=flavor,
        resource=resource,
        is_limit=is_limit,
        amount=new,
        instead_of=old,
    )


# --- a cluster with it ---------------------------------------------------------------


def with_raises(snapshot: Snapshot, raises: Iterable[QuotaRaise]) -> Snapshot:
    """Let quotas be larger."""
    for each in raises:
        queues = snapshot.queues
        known: ClusterQueue | Cohort | None = (
            queues.cohorts.get(each.name)
            if each.is_cohort
            else queues.cluster_queues.get(each.name)
        )
        if known is None:
            continue
        unit = MILLI if each.resource == CPU else NANO
        field = "borrowing_limit" if each.is_limit else "nominal_quota"
        groups = set_amount(
            known.spec.resource_groups,
            (each.flavor, each.resource),
            **{field: Quantity.of_nano(each.amount * unit)},
        )
        spec = structs.replace(known.spec, resource_groups=groups)
        changed = structs.replace(known, spec=spec)
        snapshot = observe(snapshot, each.name, changed)
    return snapshot


def set_amount(
    groups: Iterable[ResourceGroup], quota: FlavorResource, **amount: Quantity
) -> tuple[ResourceGroup, ...]:
    """Set a field of one quota, by its flavor and resource."""
    name, resource = quota

    def set_resource(each: ResourceAmounts) -> ResourceAmounts:
        return structs.replace(each, **amount) if each.name == resource else each

    def set_flavor(each: FlavorQuotas) -> FlavorQuotas:
        if each.name != name:
            return each
        return structs.replace(each, resources=tuple(map(set_resource, each.resources)))

    return tuple(
        structs.replace(group, flavors=tuple(map(set_flavor, group.flavors)))
        for group in groups
    )
