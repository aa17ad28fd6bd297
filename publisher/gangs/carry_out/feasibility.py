"""Finds out whether a submitted gang can still get what it asked for.

A submission says which claims want devices, and binds pods to the devices that their
other claims have. If pods or claims have changed since, no decision helps: the gang is
given up and its pods are submitted anew. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec.structs import replace

from contracts.allocation import AllocationResult, Reason
from contracts.claim import ResourceClaimSpec
from contracts.counts import counted
from contracts.gang import Member, MemberNode
from contracts.ids import NodeName
from contracts.kubernetes.defaults import default_claim_spec
from contracts.messages import Place, SubmitGang
from contracts.names import GANG_UID
from contracts.pods.node_affinity import NODE_AFFINITY, REQUIRED
from contracts.pods.volumes import MissingVolume, find_volume_nodes
from contracts.workload import Pod
from publisher.gangs.carry_out.plan_claims import Assignment
from publisher.gangs.claims import MOST_RESERVED, is_same_allocation, reserved_uids
from publisher.gangs.context import PlanContext, SubmittedGang
from publisher.gangs.node_affinity import bind_node, leave_out, pinned_node_of
from publisher.gangs.rollback import is_leftover
from publisher.gangs.submit.completeness import is_left_alone
from publisher.gangs.view import claim_keys, is_over, uids_of
from publisher.gangs.void_marks import is_void
from publisher.gangs.volumes import volume_claims_of_pod


def find_fault(
    context: PlanContext, submitted: SubmittedGang, assignments: Iterable[Assignment]
) -> str:
    """Return why a gang with closed gates can no longer be had; empty: it can.

    `assignments` are those of the decision that counts, if there is one.
    """
    message = submitted.record.submission
    if message is None:
        return ""
    if any(is_void(pod, message.uid) for pod in submitted.waiting):
        return "the decision was given up"
    displaced = [pod for pod in submitted.displaced if not is_over(pod)]
    there = displaced or submitted.waiting
    count = len(submitted.record.pods)
    if len(there) < count:
        return f"{count - len(there)} of {counted(count, 'pod is', 'pods are')} gone"
    begins = not displaced and not submitted.is_reserved
    if begins and is_left_alone(submitted.waiting, context, _count_enough(message)):
        return "a gang begins whole, and no pod that these were to join runs"
    decided = {(a.member, a.index): a for a in assignments}
    for member in message.gang.spec.members:
        for index, place in enumerate(message.places.get(member.name, ())):
            assignment = decided.get((member.name, index))
            fault = find_place_fault(context, submitted, member, place, assignment)
            if fault:
                return fault
    faults = (_find_pod_fault(context, pod, decided.values()) for pod in displaced)
    return next(filter(None, faults), "")


def _count_enough(message: SubmitGang) -> dict[str, int]:
    """Count how many pods of each member are enough for a submission."""
    return {
        member.name: sum(
            len(place.pods) for place in message.places.get(member.name, ())
        )
        if member.min_count is None
        else member.min_count
        for member in message.gang.spec.members
    }


def find_place_fault(
    context: PlanContext,
    submitted: SubmittedGang,
    member: Member,
    place: Place,
    assignment: Assignment | None,
) -> str:
    """Return why a place can no longer get what it asked for; empty: it can."""
    faults = _list_place_faults(context, submitted, member, place, assignment)
    return next(filter(None, faults), "")


def _list_place_faults(
    context: PlanContext,
    submitted: SubmittedGang,
    member: Member,
    place: Place,
    assignment: Assignment | None,
) -> Iterator[str]:
    namespace = context.group.namespace
    uids = {ref.uid for ref in place.pods}
    pods = [pod for pod in submitted.pods if pod.metadata.uid in uids]
    # First the claims that want devices.
    keys = [f"{namespace}/{name}" for name in place.claims]
    decided = dict(() if assignment is None else assignment.claims)
    waiting = uids_of(submitted.waiting)
    specs = (claim.spec for claim in member.claims)
    for key, spec in zip(keys, specs, strict=False):
        yield _find_claim_fault(context, key, decided.get(key), waiting)
        yield _find_spec_fault(context, key, spec)
    # Then the volumes, as long as the place is no more than asked for: what is decided
    # goes on, and kube-scheduler says whether it still can be.
    message = submitted.record.submission
    if assignment is None and not submitted.is_reserved and message is not None:
        yield _find_volume_fault(context, message, member, pods)
    # Then those that had devices already: the pods are bound to where these are.
    node = NodeName("") if assignment is None else assignment.node
    others = {key for pod in pods for key in claim_keys(pod).values()} - set(keys)
    for key in sorted(others):
        yield _find_written_claim_fault(context, key, pods, node)


def _find_claim_fault(
    context: PlanContext,
    key: str,
    decided: AllocationResult | None,
    waiting: frozenset[str],
) -> str:
    """Return what is wrong with a claim that wants devices; empty: nothing."""
    claim = context.view.claim(key)
    if claim is None:
        return f"ResourceClaim {key} is gone"
    if claim.metadata.deletion_timestamp:
        return f"ResourceClaim {key} is being deleted"
    held = claim.allocation
    if held is None or is_leftover(key, waiting, context.view):
        return ""
    if decided is not None and is_same_allocation(held, decided):
        return ""
    return f"ResourceClaim {key} was allocated by somebody else"


def _find_spec_fault(
    context: PlanContext, key: str, spec: ResourceClaimSpec | None
) -> str:
    """Return a fault if another claim has the name now (a spec never changes)."""
    claim = context.view.claim(key)
    if claim is None or spec is None or claim.spec == spec:
        return ""
    if default_claim_spec(claim.spec) == default_claim_spec(spec):
        return ""
    return f"ResourceClaim {key} was recreated with other requests"


def _find_volume_fault(
    context: PlanContext, message: SubmitGang, member: Member, pods: Sequence[Pod]
) -> str:
    """Return a fault if the pods' volumes can be had on other nodes than before."""
    view = context.view
    for pod in pods:
        found = find_volume_nodes(pod.metadata, pod.spec, view.volumes)
        if isinstance(found, MissingVolume):
            return f"pod {pod.metadata.name}: {found.message}"
    if any(volume_claims_of_pod(pod) for pod in pods):
        asked = replace(member.node, affinity=pods[0].spec.affinity)
        bound = bind_node(asked, pods, view)
        keys = {rule.key for rule in message.gang.spec.topology}
        if isinstance(bound, Reason) or (
            _nodes_of(leave_out(bound, message.avoided), keys)
            != _nodes_of(member.node, keys)
        ):
            names = ", ".join(pod.metadata.name for pod in pods)
            return f"the volumes of {names} are on other nodes now"
    return ""


def _nodes_of(node: MemberNode, keys: Container[str]) -> tuple[object, ...]:
    """Return which nodes are asked for, without labels that the gang's rules use.

    Those follow from where other pods of the gang run.
    """
    required = (node.affinity.get(NODE_AFFINITY) or {}).get(REQUIRED) or {}
    kept = []
    for term in required.get("nodeSelectorTerms") or ():
        expressions = term.get("matchExpressions") or ()
        others = [one for one in expressions if one["key"] not in keys]
        kept.append((others, term.get("matchFields") or []))
    return node.node_name, [term for term in kept if any(term)]


def _find_written_claim_fault(
    context: PlanContext, key: str, pods: Sequence[Pod], node: NodeName
) -> str:
    """Return why a claim that was written before cannot be kept; empty: it can."""
    claim = context.view.claim(key)
    if claim is None:
        return f"ResourceClaim {key} is gone"
    held = claim.allocation
    if held is not None:
        where = held.only_node
        if where and node and where != node:
            return f"ResourceClaim {key} is allocated on {where} now"
    if not context.owns(claim):
        return ""
    if held is None:
        return f"ResourceClaim {key} no longer holds devices"
    if len(reserved_uids(claim) | uids_of(pods)) > MOST_RESERVED:
        return f"ResourceClaim {key} is already reserved for {MOST_RESERVED} users"
    return ""


def _find_pod_fault(
    context: PlanContext, pod: Pod, assignments: Iterable[Assignment]
) -> str:
    """Return why a pod whose gate is open cannot take what was decided for it."""
    for assignment in assignments:
        if pod.metadata.uid not in {ref.uid for ref in assignment.pods}:
            continue
        if assignment.node != pinned_node_of(pod):
            return f"pod {pod.metadata.name} is not pinned to {assignment.node}"
        claims = (context.view.claim(key) for key, _ in assignment.claims)
        is_bound = pod.spec.node_name and GANG_UID in pod.metadata.annotations
        if is_bound and any(c and not c.allocation for c in claims):
            return f"pod {pod.metadata.name} was bound without its devices"
    return ""
