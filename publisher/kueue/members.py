"""Pod sets with quota -> members of a Gang, on the nodes that Kueue chose for them.

Kueue adds the node labels and tolerations of the assigned flavors to the pods when it
starts them (podset.FromAssignment), and under topology-aware scheduling each pod's
domain when it opens the pod's gate. Devices are asked for on the same nodes: a pod set
in several domains is as many members. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from contracts.gang import Member, MemberClaim, MemberNode
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.members import read_member_pod
from publisher.gang_names import name_part
from publisher.kueue.objects import (
    KueueFlavor,
    KueuePodSet,
    KueuePodSetAssignment,
    KueueWorkload,
)

_UNASSIGNED = KueuePodSetAssignment()


def list_pod_sets(
    workload: KueueWorkload,
) -> Iterator[tuple[KueuePodSet, KueuePodSetAssignment, int]]:
    """Go through the pod sets with pods: what Kueue assigned them, how many there are.

    Partial admission gives quota to fewer pods than the pod set has.
    """
    assignments = workload.status.admission.pod_set_assignments
    by_name = {assignment.name: assignment for assignment in assignments}
    for pod_set in workload.spec.pod_sets:
        assigned = by_name.get(pod_set.name, _UNASSIGNED)
        count = pod_set.count if assigned.count is None else assigned.count
        if count:
            yield pod_set, assigned, count


def find_unassigned(workload: KueueWorkload, flavors: Mapping[str, KueueFlavor]) -> str:
    """Return what must be known before devices are asked for; empty: nothing."""
    for pod_set, assigned, _ in list_pod_sets(workload):
        for name in sorted(set(assigned.flavors.values())):
            if name not in flavors:
                return f"ResourceFlavor {name} is not known yet"
        if assigned.delayed_topology_request and assigned.topology_assignment is None:
            return f"Kueue has not assigned the topology of {pod_set.name} yet"
    return ""


def make_members(
    workload: KueueWorkload, flavors: Mapping[str, KueueFlavor]
) -> dict[str, tuple[Member, ...]]:
    """Make the members that pod sets are, by pod set: one for each topology domain.

    Raises:
        DecodeError: a topology assignment contradicts itself.
    """
    return {
        pod_set.name: tuple(_make_parts(pod_set, assigned, count, flavors))
        for pod_set, assigned, count in list_pod_sets(workload)
    }


def _make_parts(
    pod_set: KueuePodSet,
    assigned: KueuePodSetAssignment,
    count: int,
    flavors: Mapping[str, KueueFlavor],
) -> Iterator[Member]:
    spec = pod_set.template.spec
    claims = tuple(
        MemberClaim(
            name=claim.name,
            template_name=claim.resource_claim_template_name,
            claim_name=claim.resource_claim_name,
        )
        for claim in spec.resource_claims
    )
    pod = read_member_pod(pod_set.template.metadata, spec, claims)
    node = _add_flavors(pod.node, assigned, flavors)
    topology = assigned.topology_assignment
    domains = list(topology.domains()) if topology else []
    for number, (labels, pods) in enumerate(domains or [({}, count)], start=1):
        selector = {**node.node_selector, **labels}
        yield Member(
            name=name_part(pod_set.name, number),
            count=pods,
            claims=claims,
            node=replace(node, node_selector=selector),
        )


def _add_flavors(
    node: MemberNode,
    assigned: KueuePodSetAssignment,
    flavors: Mapping[str, KueueFlavor],
) -> MemberNode:
    selector, tolerations = dict(node.node_selector), list(node.tolerations)
    for name in sorted(set(assigned.flavors.values())):
        spec = flavors[name].spec
        selector |= spec.node_labels
        tolerations += [each for each in spec.tolerations if each not in tolerations]
    return replace(node, node_selector=selector, tolerations=tuple(tolerations))


def spread_rules(
    rules: DeclaredRules, members: Mapping[str, tuple[Member, ...]]
) -> DeclaredRules:
    """Name all members that a pod set is wherever rules name the pod set."""
    return DeclaredRules(
        constraints=tuple(
            _spread_constraint(each, members) for each in rules.constraints
        ),
        topology=tuple(_spread_topology(each, members) for each in rules.topology),
    )


def _spread_constraint(
    constraint: GangConstraint, members: Mapping[str, tuple[Member, ...]]
) -> GangConstraint:
    requests = []
    for path in constraint.requests:
        name, slash, rest = path.partition("/")
        requests += [f"{part}{slash}{rest}" for part in _list_parts(name, members)]
    return replace(constraint, requests=tuple(requests))


def _spread_topology(
    rule: GangTopology, members: Mapping[str, tuple[Member, ...]]
) -> GangTopology:
    parts = [part for name in rule.members for part in _list_parts(name, members)]
    return replace(rule, members=tuple(parts))


def _list_parts(name: str, members: Mapping[str, tuple[Member, ...]]) -> list[str]:
    return [member.name for member in members.get(name, ())] or [name]
