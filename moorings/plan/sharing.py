"""After a decision: pods that waited for a claim which another gang got.

One gang at a time asks for the devices of a claim. Once it has them, pods of other
gangs that use the claim are bound by it, and are asked for in their turn. Pure.
"""

from __future__ import annotations

from msgspec import structs

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaimConsumerReference, ResourceClaimStatus
from contracts.ids import SolveID, object_key
from contracts.messages import GangAllocated, MemberAllocated, Place, SubmitGang
from contracts.names import GANG_UID
from moorings.plan.asking import ask
from moorings.plan.cluster import PlannedCluster
from moorings.plan.state import CLUSTER
from moorings.plan.work import PlanWork, submit
from publisher.gangs.view import View
from solver.decision import Decision
from solver.snapshot.snapshot import apply


def continue_work(work: PlanWork, decision: Decision) -> PlanWork | None:
    """Return the work that a decision makes possible; None: there is none."""
    cluster = work.cluster
    sharing = [each for each in work.waiting if each.is_shared]
    if cluster is None or not sharing:
        return None
    decided = _carry_out(work, cluster, decision)
    asked = ask(cluster.view, dict.fromkeys(each.group for each in sharing))
    if not decided or not asked.gangs:
        return None
    snapshot = work.snapshot
    for message in decided:
        snapshot = apply(snapshot, message, sequence=1)
    others = [each for each in work.waiting if not each.is_shared]
    return structs.replace(
        work,
        snapshot=submit(snapshot, asked.gangs, cluster, len(snapshot.gangs)),
        gangs=tuple(asked.gangs),
        waiting=(*others, *asked.waiting),
    )


def _carry_out(
    work: PlanWork, cluster: PlannedCluster, decision: Decision
) -> list[GangAllocated]:
    """Let pods and claims be as they are once a decision is written and bound."""
    messages = {message.uid: message for message in work.gangs}
    decided = []
    for gang in decision.gangs:
        message = messages.get(gang.uid)
        if message is None or gang.reasons:
            continue
        decided.append(
            GangAllocated(
                cluster=CLUSTER,
                namespace=gang.namespace,
                uid=gang.uid,
                name=gang.name,
                solve=SolveID(decision.problem),
                attempt=1,
                epoch=1,
                members=gang.members,
            )
        )
        for member in gang.members:
            if message.places:
                place = message.places[member.member][member.index]
                _bind_place(message, member, place, cluster.view)
            else:
                _hold_named(message, member, cluster.view)
    return decided


def _hold_named(message: SubmitGang, member: MemberAllocated, view: View) -> None:
    """Let the claims that a member names hold their devices, for nobody yet."""
    written = next(m for m in message.gang.spec.members if m.name == member.member)
    names = {claim.name: claim.claim_name for claim in written.claims}
    for claim in member.claims:
        name = names.get(claim.claim)
        if name:
            key = object_key(message.gang.metadata.namespace, name)
            _hold_claim(view, key, claim.allocation, ())


def _bind_place(
    message: SubmitGang, member: MemberAllocated, place: Place, view: View
) -> None:
    """Let the claims of a place hold their devices, and its pods be on their node."""
    namespace = message.gang.metadata.namespace
    names = next(m for m in message.gang.spec.members if m.name == member.member)
    claims = {
        claim.name: name for claim, name in zip(names.claims, place.claims, strict=True)
    }
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=ref.name, uid=ref.uid)
        for ref in place.pods
    )
    for claim in member.claims:
        if claim.claim in claims:
            key = object_key(namespace, claims[claim.claim])
            _hold_claim(view, key, claim.allocation, users)
    for ref in place.pods:
        pod = view.pod_of(namespace, ref.name, ref.uid)
        if pod is not None:
            notes = {**pod.metadata.annotations, GANG_UID: message.uid}
            bound = structs.replace(
                pod,
                metadata=structs.replace(pod.metadata, annotations=notes),
                spec=structs.replace(
                    pod.spec, scheduling_gates=(), node_name=member.node
                ),
            )
            view.apply_pod(object_key(namespace, ref.name), bound)


def _hold_claim(
    view: View,
    key: str,
    allocation: AllocationResult,
    users: tuple[ResourceClaimConsumerReference, ...],
) -> None:
    claim = view.claim(key)
    if claim is not None:
        before = () if claim.status is None else claim.status.reserved_for
        status = ResourceClaimStatus(
            allocation=allocation, reserved_for=(*before, *users)
        )
        view.apply_claim(key, structs.replace(claim, status=status))
