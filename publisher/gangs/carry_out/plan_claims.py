"""(decision, observed claims) -> the next write of each claim, and then of each pod.

A claim without devices gets its finalizer, then its allocation; one that holds exactly
what was decided is done, unless another claim holds the same device. The API server
compares neither devices nor owners, so two claims of one device are found here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from contracts.allocation import AllocationResult
from contracts.ids import Namespace, NodeName
from contracts.messages import GangAllocated, MemberAllocated, Place, PodRef, SubmitGang
from contracts.names import ATTEMPT, GANG_UID, INDEX, SOLVE
from contracts.workload import Pod
from publisher.errors import DecisionError
from publisher.gangs import patches
from publisher.gangs.claims import (
    is_prepared,
    is_same_allocation,
    list_exclusive_devices,
    list_missing,
    name_holder,
)
from publisher.gangs.context import PlanContext
from publisher.gangs.members import ref_of
from publisher.gangs.patches import Patch
from publisher.gangs.view import View, claim_keys, is_gated, is_over


class Assignment(Struct, frozen=True, kw_only=True):
    """What was decided for one place: its pod, its node, and its claims."""

    namespace: Namespace
    member: str
    index: int
    node: NodeName
    pods: tuple[PodRef, ...]
    claims: tuple[tuple[str, AllocationResult], ...]
    """By `namespace/name` of the ResourceClaim."""

    def alive(self, view: View) -> tuple[Pod, ...]:
        """Return its pods that exist and have not ended."""
        pods = (view.pod_of(self.namespace, ref.name, ref.uid) for ref in self.pods)
        return tuple(pod for pod in pods if pod is not None and not is_over(pod))


class ClaimWrites(Struct, frozen=True, kw_only=True):
    """Writes to do next, or reasons why the decision cannot be written."""

    patches: tuple[Patch, ...] = ()
    refusals: tuple[str, ...] = ()


def assignments_of(
    decision: GangAllocated, submission: SubmitGang
) -> tuple[Assignment, ...]:
    """Return what was decided for the pods that were submitted.

    Raises:
        DecisionError: the decision names what was not submitted.
    """
    names = {
        member.name: [claim.name for claim in member.claims]
        for member in submission.gang.spec.members
    }
    assignments = []
    undecided = {
        (name, index)
        for name, places in submission.places.items()
        for index, place in enumerate(places)
        if place.pods
    }
    for member in decision.members:
        places = submission.places.get(member.member, ())
        if member.index < len(places) and not places[member.index].pods:
            continue
        if (member.member, member.index) not in undecided:
            reason = (
                f"{member.member}/{member.index}: there is no such pod, or more than "
                "one"
            )
            raise DecisionError(decision.uid, reason)
        undecided.discard((member.member, member.index))
        place = places[member.index]
        claims = tuple(_list_claims(decision, member, names[member.member], place))
        assignments.append(
            Assignment(
                namespace=decision.namespace,
                member=member.member,
                index=member.index,
                node=member.node,
                pods=place.pods,
                claims=claims,
            )
        )
    if undecided:
        name, index = min(undecided)
        raise DecisionError(decision.uid, f"{name}/{index}: nothing was decided for it")
    return tuple(assignments)


def plan_claims(assignments: Iterable[Assignment], context: PlanContext) -> ClaimWrites:
    """Plan the next write of every claim; nothing to write: all hold what they should.

    Claims of the pods that were allocated before are reserved for them as well.
    """
    view = context.view
    writes: list[Patch] = []
    refusals: list[str] = []
    joining: dict[str, list[PodRef]] = {}
    decided: dict[str, tuple[AllocationResult, list[PodRef]]] = {}
    for assignment in assignments:
        alive = assignment.alive(view)
        if assignment.node not in view.nodes and any(map(is_gated, alive)):
            refusals.append(f"node {assignment.node} is gone")
        for key, allocation in assignment.claims:
            # Pods that share a claim are decided with one allocation.
            _, users = decided.setdefault(key, (allocation, []))
            users += [ref_of(pod) for pod in alive if key in claim_keys(pod).values()]
        for pod in filter(is_gated, alive):
            for key in _prior_claims_of(pod, assignment, context):
                joining.setdefault(key, []).append(ref_of(pod))
    for key, (allocation, users) in decided.items():
        step = _plan_claim(key, allocation, users, context) if users else None
        if isinstance(step, str):
            refusals.append(step)
        elif step is not None:
            writes.append(step)
    if refusals:
        return ClaimWrites(refusals=tuple(refusals))
    writes += _plan_joining(joining, view)
    return ClaimWrites(patches=tuple(writes))


def plan_gates(
    decision: GangAllocated, assignments: Iterable[Assignment], view: View
) -> Iterator[Patch]:
    """Plan the one write of every pod that still waits: no gate, and a pin to its node.

    Called only once every claim of the gang holds what was decided. A pod that is gone
    is left out: whoever made it makes another, which waits at a gate of its own.
    """
    for assignment in assignments:
        annotations = {
            GANG_UID: decision.uid,
            ATTEMPT: str(decision.attempt),
            SOLVE: decision.solve,
            INDEX: f"{assignment.member}/{assignment.index}",
        }
        for pod in filter(is_gated, assignment.alive(view)):
            yield patches.open_gate(pod, assignment.node, annotations)


def _prior_claims_of(
    pod: Pod, assignment: Assignment, context: PlanContext
) -> Iterator[str]:
    """Name the claims of ours that a pod has beside those that were decided."""
    decided = dict(assignment.claims)
    for key in claim_keys(pod).values():
        claim = context.view.claim(key)
        if key not in decided and claim is not None and context.owns(claim):
            yield key


def _list_claims(
    decision: GangAllocated, member: MemberAllocated, names: list[str], place: Place
) -> Iterator[tuple[str, AllocationResult]]:
    if sorted(claim.claim for claim in member.claims) != sorted(names):
        reason = f"{member.member}/{member.index}: not each of its claims once"
        raise DecisionError(decision.uid, reason)
    if len(names) != len(place.claims):
        reason = f"{member.member}/{member.index}: its pods have other claims"
        raise DecisionError(decision.uid, reason)
    for claim in member.claims:
        name = place.claims[names.index(claim.claim)]
        yield f"{decision.namespace}/{name}", claim.allocation


def _plan_joining(joining: Mapping[str, list[PodRef]], view: View) -> Iterator[Patch]:
    for key, refs in joining.items():
        claim = view.claim(key)
        if claim is None or claim.allocation is None:
            continue
        if list_missing(claim, refs):
            yield patches.reserve(claim, refs)


def _plan_claim(
    key: str, decided: AllocationResult, users: list[PodRef], context: PlanContext
) -> Patch | str | None:
    """Plan the next write of one claim; None: it is done; a str: why it cannot be."""
    claim = context.view.claim(key)
    if claim is None or claim.metadata.deletion_timestamp:
        return f"ResourceClaim {key} is gone"
    taken = find_holder(key, decided, context.view)
    if taken:
        return taken
    held = claim.allocation
    if held is None:
        if not is_prepared(claim):
            return patches.prepare(claim)
        return patches.allocate(claim, decided, users, context.now)
    if not is_same_allocation(held, decided):
        return f"ResourceClaim {key} was allocated by somebody else"
    if not list_missing(claim, users):
        return None
    return patches.reserve(claim, users)


def find_holder(key: str, decided: AllocationResult, view: View) -> str:
    """Return who holds a device that was decided for a claim; empty: nobody."""
    for device in list_exclusive_devices(decided):
        others = view.holders(device) - {key}
        if others:
            holder = name_holder(others, key.partition("/")[0])
            return f"device {device} is held by {holder}"
    return ""
