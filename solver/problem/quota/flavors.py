"""Which flavor a gang's pods take: of each resource group the first with enough quota.

All pods of a gang are of one flavor of a group; Kueue chooses one for each pod set.
A flavor whose nodes the pods do not select, or whose taints they do not tolerate, is
passed over. Pure.

Source: Kueue's concepts "ResourceFlavor" and "ClusterQueue" (flavor fungibility).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from contracts.device import NodeSelector, NodeSelectorTerm
from contracts.gang import NodeToleration
from contracts.kueue import ClusterQueue, FlavorQuotas, ResourceFlavor, ResourceGroup
from contracts.labels import holds
from contracts.workload import NodeTaint
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.quota.asked import Asked
from solver.problem.quota.tree import Amounts, QuotaLedger, QuotaNode
from solver.snapshot.queues import QueueObjects


class Flavors(Struct, frozen=True, kw_only=True):
    """The flavors of a gang, and what it takes of their quotas."""

    by_resource: dict[str, str] = {}
    amounts: Amounts = {}
    borrows: bool = False


class Shortage(Struct, frozen=True, kw_only=True):
    """Why no flavor of a resource group will do."""

    flavor: str = ""
    """The last that was tried; empty: the pods may be of none."""
    resource: str
    asked: int


Suiting = tuple[tuple[str, ...], ...]
"""The flavors that a gang's pods may be of, resource group by resource group."""


def list_suiting(objects: QueueObjects, queue: ClusterQueue, gang: GangPart) -> Suiting:
    """List the flavors that a gang's pods may be of; those chosen once stay."""
    fixed = {} if gang.queue is None else gang.queue.flavors
    found = []
    for group in queue.spec.resource_groups:
        chosen = {fixed[r] for r in group.covered_resources if r in fixed}
        names = [
            flavor.name
            for flavor in group.flavors
            if (
                flavor.name in chosen
                if chosen
                else _suits(gang, flavor, group, objects)
            )
        ]
        found.append(tuple(names))
    return tuple(found)


def choose_flavors(
    ledger: QuotaLedger, queue: ClusterQueue, suiting: Suiting, asked: Asked
) -> Flavors | Shortage:
    """Choose the flavors of a gang by what is left now, or say what is short."""
    node = ledger.tree.queues[queue.metadata.name]
    by_resource: dict[str, str] = {}
    amounts: Amounts = {}
    for group, names in zip(queue.spec.resource_groups, suiting, strict=True):
        wanted = {r: asked[r] for r in group.covered_resources if asked.get(r)}
        if not wanted:
            continue
        chosen = _choose(ledger, node, names, wanted, queue)
        if isinstance(chosen, Shortage):
            return chosen
        by_resource |= dict.fromkeys(wanted, chosen)
        amounts |= {(chosen, r): amount for r, amount in wanted.items()}
    return Flavors(
        by_resource=by_resource, amounts=amounts, borrows=ledger.borrows(node, amounts)
    )


def _choose(
    ledger: QuotaLedger,
    node: QuotaNode,
    names: Iterable[str],
    wanted: Asked,
    queue: ClusterQueue,
) -> str | Shortage:
    waits = queue.spec.flavor_fungibility.when_can_borrow == "TryNextFlavor"
    first, short = min(wanted), ""
    borrowing, last = "", Shortage(resource=first, asked=wanted[first])
    for name in names:
        amounts = {(name, r): amount for r, amount in wanted.items()}
        short = next(
            (q[1] for q, a in amounts.items() if a > ledger.available(node, q)), ""
        )
        if short:
            last = Shortage(flavor=name, resource=short, asked=wanted[short])
        elif not waits or not ledger.borrows(node, amounts):
            return name
        else:
            borrowing = borrowing or name
    return borrowing or last


# --- whose pods may be of a flavor ---------------------------------------------------


def _suits(
    gang: GangPart, quotas: FlavorQuotas, group: ResourceGroup, objects: QueueObjects
) -> bool:
    flavor = objects.flavors.get(quotas.name)
    if flavor is None:
        return False
    found = (objects.flavors.get(each.name) for each in group.flavors)
    keys = {key for each in found if each for key in each.spec.node_labels}
    return all(_is_for(member, flavor, keys) for member in gang.members)


def _is_for(member: MemberPart, flavor: ResourceFlavor, keys: set[str]) -> bool:
    """True if pods may be on a flavor's nodes, by the labels that flavors have."""
    labels, spec = flavor.spec.node_labels, flavor.spec
    if any(labels.get(k) != v for k, v in member.node_selector.items() if k in keys):
        return False
    if member.affinity is not None and not _may_match(member.affinity, labels, keys):
        return False
    tolerations = (*member.tolerations, *spec.tolerations)
    return all(
        any(_tolerates(each, taint) for each in tolerations)
        for taint in spec.node_taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )


def _may_match(
    selector: NodeSelector, labels: Mapping[str, str], keys: set[str]
) -> bool:
    return any(
        _may_match_term(term, labels, keys) for term in selector.node_selector_terms
    )


def _may_match_term(
    term: NodeSelectorTerm, labels: Mapping[str, str], keys: set[str]
) -> bool:
    return all(holds(e, labels) for e in term.match_expressions if e.key in keys)


def _tolerates(toleration: NodeToleration, taint: NodeTaint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def with_flavors(gang: GangPart, flavors: Flavors, objects: QueueObjects) -> GangPart:
    """Let a gang's pods be on the nodes of its flavors alone, and tolerate them."""
    if gang.queue is None:
        return gang
    labels: dict[str, str] = {}
    tolerations: list[NodeToleration] = []
    by_resource = {**gang.queue.flavors, **flavors.by_resource}
    for name in sorted(set(by_resource.values())):
        flavor = objects.flavors.get(name)
        if flavor is not None:
            labels |= flavor.spec.node_labels
            tolerations += flavor.spec.tolerations
    queue = structs.replace(gang.queue, flavors=by_resource)
    members = gang.members
    if labels or tolerations:
        members = tuple(_restrict(member, labels, tolerations) for member in members)
    return structs.replace(gang, queue=queue, members=members)


def _restrict(
    member: MemberPart, labels: dict[str, str], tolerations: list[NodeToleration]
) -> MemberPart:
    more = (each for each in tolerations if each not in member.tolerations)
    return structs.replace(
        member,
        node_selector={**member.node_selector, **labels},
        tolerations=(*member.tolerations, *more),
    )
