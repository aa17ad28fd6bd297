"""What comes next for a claim that is allocated without a pod, and kept until deleted.

It has the label `moorings.dev/allocate: Immediate`, and is a gang of one that has no
pods. What was decided for it stays in force: kube-controller-manager frees a claim when
its last user ends, and then the same is written again. What somebody else allocated is
left alone, and the claim is asked for once that is gone. Kubernetes itself takes
allocation and finalizer from a claim that is deleted. Pure.

Source: v1alpha2 `allocationMode: Immediate` (KEP-3063).
"""

from __future__ import annotations

from msgspec import structs
from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.gang import Gang, GangPhase, GangSpec, Member, MemberClaim
from contracts.ids import GangUID
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    MAX_REASON,
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangAllocated,
    GangRejected,
    ReleaseGang,
    SubmitGang,
)
from contracts.meta import ObjectMeta
from contracts.names import ALLOCATE, IMMEDIATE, MANAGED, OF_CLAIM, WORKLOAD
from contracts.reports import WAITING
from publisher.gang_names import gang_uid, shorten_gang_name
from publisher.gangs import patches
from publisher.gangs.carry_out.plan_claims import find_holder
from publisher.gangs.claims import is_immediate, is_prepared, is_same_allocation
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, add_up
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_undecided
from publisher.gangs.running.plan_repairs import (
    FINISHED,
    REMOVED,
    describe_finished,
    is_orphan,
    lacks_finalizer,
)
from publisher.gangs.submit.readiness import plan_prepare

_NAME = "claim"
"""Of the one member of its gang, and of the claim there."""
_THEN = "it is written again once the pod is deleted"
_TAKEN = "it was allocated by somebody else"


def plan_immediate(context: PlanContext) -> NextSteps:
    """Plan what may be done now for a claim with the label, or that had it."""
    claim = context.view.claim(str(context.group))
    steps = add_up(_plan_record(context, record, claim) for record in context.records)
    if claim is None or not _is_wanted(context, claim):
        return steps
    if any(_is_of(context, record, claim) for record in context.records):
        return steps
    return steps + _plan_submission(context, claim)


def _is_wanted(context: PlanContext, claim: ResourceClaim) -> bool:
    return is_immediate(claim) and context.owns(claim)


def _is_of(context: PlanContext, record: PodGangRecord, claim: ResourceClaim) -> bool:
    """True if a gang is of just this claim: others of its name were there before."""
    return record.uid == _name_gang(context, claim, record.age[0])


def _name_gang(context: PlanContext, claim: ResourceClaim, generation: int) -> GangUID:
    name = f"{OF_CLAIM}/{context.group}"
    return gang_uid(name, generation, (claim.metadata.uid,))


# --- a claim that is asked for --------------------------------------------------------


def _plan_submission(context: PlanContext, claim: ResourceClaim) -> NextSteps:
    """Ask for the claim, unless it has devices."""
    if claim.allocation is not None:
        if MANAGED in claim.metadata.annotations:
            return NextSteps()
        message = f"{_TAKEN}: once that is gone it is allocated anew, and kept"
        report = StatusReport(phase=WAITING, reason="ClaimsTaken", message=message)
        return NextSteps(reports=(report,))
    generation = 1
    while context.forgotten(_name_gang(context, claim, generation)) is not None:
        generation += 1
    name = claim.metadata.name
    asked = MemberClaim(name=_NAME, claim_name=name, spec=claim.spec)
    metadata = ObjectMeta(
        name=shorten_gang_name(name),
        namespace=context.group.namespace,
        annotations={WORKLOAD: f"{OF_CLAIM}/{name}"},
        generation=generation,
    )
    spec = GangSpec(members=(Member(name=_NAME, claims=(asked,)),))
    submission = SubmitGang(
        cluster=context.cluster,
        uid=_name_gang(context, claim, generation),
        gang=Gang(metadata=metadata, spec=spec),
        submitted_at=context.now,
    )
    return NextSteps(
        messages=(submission,), reports=(StatusReport(phase=GangPhase.PENDING),)
    )


# --- a gang that was submitted --------------------------------------------------------


def _plan_record(
    context: PlanContext, record: PodGangRecord, claim: ResourceClaim | None
) -> NextSteps:
    own = claim if claim is not None and _is_of(context, record, claim) else None
    wanted = own if own is not None and _is_wanted(context, own) else None
    if record.is_ending:
        later = (r for r in context.records if own and _is_of(context, r, own))
        is_last = all(other.age <= record.age for other in later)
        return _plan_ended(context, record, wanted if is_last else None)
    if wanted is not None:
        return _plan_wanted(context, record, wanted)
    if own is None:
        return _release(context, record)
    if not own.metadata.deletion_timestamp:
        reason = f"the ResourceClaim has no label {ALLOCATE}: {IMMEDIATE} any more"
        return _give_up(context, record, reason)
    if own.allocation is not None:
        # Somebody uses it still, or Kubernetes is about to free it.
        return NextSteps()
    return _release(context, record)


def _release(context: PlanContext, record: PodGangRecord) -> NextSteps:
    """Say that it is over; the claim is back if the cluster is restored."""
    reason = f"{PUBLISHER}the ResourceClaim is gone"
    message = ReleaseGang(**context.address(record), reason=reason)
    return NextSteps(messages=(message,))


def _give_up(context: PlanContext, record: PodGangRecord, reason: str) -> NextSteps:
    message = CancelGang(**context.address(record), reason=f"{PUBLISHER}{reason}")
    return NextSteps(messages=(message,))


def _plan_wanted(
    context: PlanContext, record: PodGangRecord, claim: ResourceClaim
) -> NextSteps:
    """Write what is decided, as often as it is lost."""
    decision, held = record.in_force, claim.allocation
    if decision is None:
        if held is not None:
            return _give_up(context, record, _TAKEN)
        return NextSteps(
            patches=tuple(plan_prepare((str(context.group),), context)),
            reports=(report_undecided(record, ()),),
        )
    decided = _read_allocation(decision)
    if decided is None:
        return _refuse(context, record, decision, "not one allocation of the claim")
    if held is None:
        return _plan_write(context, record, claim, decision, decided)
    if not is_same_allocation(held, decided):
        return _give_up(context, record, _TAKEN)
    if lacks_finalizer(claim):
        return NextSteps(patches=(patches.prepare(claim),))
    if not record.is_written:
        address = context.address(record)
        written = AllocationWritten(**address, attempt=decision.attempt)
        return NextSteps(messages=(written,))
    return NextSteps(reports=(_report_held(context, claim, decision),))


def _read_allocation(decision: GangAllocated) -> AllocationResult | None:
    """Return what was decided for the one claim; None: it is not for one claim."""
    claims = [claim for member in decision.members for claim in member.claims]
    return claims[0].allocation if len(claims) == 1 else None


def _plan_write(
    context: PlanContext,
    record: PodGangRecord,
    claim: ResourceClaim,
    decision: GangAllocated,
    decided: AllocationResult,
) -> NextSteps:
    """Write the allocation for no user; the finalizer first."""
    in_the_way = _find_in_the_way(context, claim)
    if in_the_way is not None:
        return NextSteps(reports=(in_the_way,))
    refusal = context.refused(decision.uid, decision.attempt) or _find_obstacle(
        context, claim, decision, decided
    )
    if refusal:
        return _refuse(context, record, decision, refusal)
    patch = patches.prepare(claim)
    if is_prepared(claim):
        patch = patches.allocate(claim, decided, (), context.now)
    patch = replace(patch, gang=decision.uid, attempt=decision.attempt)
    report = StatusReport(phase=GangPhase.DECIDED, decision=decision)
    return NextSteps(patches=(patch,), reports=(report,))


def _find_in_the_way(context: PlanContext, claim: ResourceClaim) -> StatusReport | None:
    """Report finished pods for which the claim is freed as often as it is written.

    kube-controller-manager reserves it for each and finds then that they have ended;
    what was decided is held on the bus until they are gone. None: there are none.
    """
    view, key = context.view, str(context.group)
    pods = tuple(
        pod
        for pod in view.finished_users.of(key)
        if view.reservation_flips.are_endless(key, pod.metadata.uid)
    )
    if not pods:
        return None
    told = describe_finished(claim.metadata.name, _THEN)
    return StatusReport(
        phase=GangPhase.ALLOCATED,
        reason=FINISHED,
        message=f"its devices are held; {told}",
        pods=pods,
    )


def _find_obstacle(
    context: PlanContext,
    claim: ResourceClaim,
    decision: GangAllocated,
    decided: AllocationResult,
) -> str:
    """Return why what was decided cannot be had any more; empty: it can."""
    view = context.view
    gone = [m.node for m in decision.members if m.node not in view.nodes]
    if gone:
        return f"node {gone[0]} is gone"
    holding = structs.replace(claim, status=ResourceClaimStatus(allocation=decided))
    removed = view.offered.missing(holding)
    if removed:
        return f"no ResourceSlice offers device {removed[0]} any longer"
    return find_holder(str(context.group), decided, view)


def _refuse(
    context: PlanContext, record: PodGangRecord, decision: GangAllocated, refusal: str
) -> NextSteps:
    """Have it decided again."""
    kind = AllocationLost if record.is_written else AllocationRefused
    address, reason = context.address(record), refusal[:MAX_REASON]
    return NextSteps(
        messages=(kind(**address, attempt=decision.attempt, reason=reason),)
    )


def _report_held(
    context: PlanContext, claim: ResourceClaim, decision: GangAllocated
) -> StatusReport:
    removed = context.view.offered.missing(claim)
    return StatusReport(
        phase=GangPhase.ALLOCATED,
        reason=REMOVED if removed else "",
        message="it holds devices that no ResourceSlice offers any longer: "
        f"{', '.join(map(str, removed))}"[:MAX_REASON]
        if removed
        else "",
        decision=decision,
    )


# --- the end --------------------------------------------------------------------------


def _plan_ended(
    context: PlanContext, record: PodGangRecord, wanted: ResourceClaim | None
) -> NextSteps:
    """Give back what is held, and remember what others decided while it is wanted."""
    if not record.is_over or (record.is_released and record.ended_by is None):
        # It is still to be read how it ends, or who wanted that.
        return NextSteps()
    is_given_up = record.is_ended_by_publisher
    is_held = is_orphan(str(context.group), context.view)
    if wanted is not None and is_held and not is_given_up:
        return NextSteps(patches=(patches.clear(wanted),))
    if not record.is_finished:
        return NextSteps(messages=(ClaimsReleased(**context.address(record)),))
    if wanted is None or is_given_up:
        return NextSteps(forget=(record.uid,))
    if isinstance(record.decision, GangRejected):
        return NextSteps(reports=(report_undecided(record, ()),))
    report = StatusReport(
        phase=GangPhase.CANCELLED,
        reason="Cancelled",
        message="it was cancelled; create the ResourceClaim anew to try again",
    )
    return NextSteps(reports=(report,))
