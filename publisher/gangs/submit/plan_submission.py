"""What is submitted: waiting pods once their gang is whole, or a Gang object. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from contracts.gang import Gang, GangPhase
from contracts.ids import GangUID
from contracts.kueue import queue_label
from contracts.messages import SubmitGang
from contracts.meta import ObjectMeta, OwnerReference
from contracts.names import GANG
from contracts.pods.membership import explain_alone, is_told_alone
from contracts.reports import WAITING
from contracts.validate.pods import Fraction, list_fractions
from contracts.workload import Pod
from publisher.gang_names import gang_uid
from publisher.gangs.context import NextSteps, PlanContext, StatusReport
from publisher.gangs.reports import report_cancelled
from publisher.gangs.running.avoidance import find_avoidance
from publisher.gangs.running.growth import wait_for_more_s
from publisher.gangs.submit.assemble import assemble
from publisher.gangs.submit.readiness import NotReady, plan_fresh_start
from publisher.gangs.submit.scale import find_mismatch
from publisher.gangs.submit.split import UnsubmittedGang
from publisher.gangs.view import uids_of

DECIDED_ALONE = "DecidedAlone"
SIZE_DIFFERS = "SizeDiffers"
AMOUNT_FRACTIONAL = "AmountFractional"
_BEGINS_SMALLER = "the gang begins with the smaller number, and other pods join it"


def plan_submission(context: PlanContext, unsubmitted: UnsubmittedGang) -> NextSteps:
    """Submit pods once they are a whole gang, or say why not yet."""
    pods = unsubmitted.pods
    steps = NextSteps(patches=tuple(plan_fresh_start(pods, context)))
    generation, uid = _name_next_gang(context, pods)
    if context.forgotten(uid) is False:
        return steps + NextSteps(reports=(report_cancelled(pods),))
    # Whose gates are open keep the nodes that they are pinned to.
    avoided = () if unsubmitted.is_displaced else find_avoidance(context, pods).nodes
    made = assemble(
        replace(unsubmitted, generation=generation, avoided=avoided), context
    )
    more_s = 0.0 if unsubmitted.company.ran else wait_for_more_s(context, pods)
    if more_s and isinstance(made, SubmitGang):
        steps += NextSteps(look_again_s=more_s)
        made = NotReady(reason="PodsMissing", message="waiting for more pods")
    if isinstance(made, SubmitGang):
        report = _report_submission(context, pods)
        return steps + NextSteps(messages=(made,), reports=(report,))
    report = StatusReport(
        phase=WAITING,
        reason=made.reason,
        message=made.message,
        cause=made.cause,
        pods=pods,
    )
    return steps + NextSteps(reports=(report,))


def _report_submission(context: PlanContext, pods: tuple[Pod, ...]) -> StatusReport:
    """Report pods that are submitted, and what their author may not expect."""
    reason, message = "", ""
    mismatch = find_mismatch(pods, context)
    if _is_apart(context, pods):
        reason = DECIDED_ALONE
        message = f"decided one by one, since {explain_alone(pods[0])}"
    elif mismatch is not None and not mismatch.is_short:
        reason, message = SIZE_DIFFERS, f"{mismatch.message}; {_BEGINS_SMALLER}"
    elif (fraction := _find_fraction(pods)) is not None:
        reason, message = AMOUNT_FRACTIONAL, f"{fraction.field}: {fraction}"
    return StatusReport(
        phase=GangPhase.PENDING, reason=reason, message=message, pods=pods
    )


def _find_fraction(pods: Iterable[Pod]) -> Fraction | None:
    """Return the first amount that is no whole number where only these count."""
    return next((f for pod in pods for f in list_fractions(pod.spec)), None)


def _is_apart(context: PlanContext, pods: Sequence[Pod]) -> bool:
    """True if other pods of their maker are decided apart, and that may surprise."""
    pod = pods[0]
    is_told = is_told_alone(pod, context.membership(pod))
    return is_told and context.view.count_siblings(pod) > 1


def _name_next_gang(context: PlanContext, pods: Sequence[Pod]) -> tuple[int, GangUID]:
    """Return the generation and uid of the next gang of these pods."""
    name, uids = str(context.group), uids_of(pods)
    ages = (r.age[0] for r in context.records if not uids.isdisjoint(r.pods))
    generation = 1 + max(ages, default=0)
    while context.forgotten(uid := gang_uid(name, generation, uids)):
        generation += 1
    return generation, uid


def plan_reservation(context: PlanContext, gang: Gang) -> NextSteps | None:
    """Submit a Gang with `hold: true`, before its pods; None: it was submitted."""
    meta = gang.metadata
    uid = GangUID(meta.uid)
    is_submitted = any(record.uid == uid for record in context.records)
    if is_submitted or context.forgotten(uid) is not None:
        return None
    owner = OwnerReference(
        api_version=gang.api_version, kind=gang.kind, name=meta.name, uid=meta.uid
    )
    named = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        labels={GANG: meta.name, **queue_label(meta.labels)},
        owner_references=(owner,),
        generation=1,
    )
    try:
        message = SubmitGang(
            cluster=context.cluster,
            uid=uid,
            gang=Gang(metadata=named, spec=gang.spec),
            submitted_at=context.now,
        )
    except ValueError as error:
        text = f"the Gang: {error}"
        report = StatusReport(phase=WAITING, reason="Invalid", message=text)
        return NextSteps(reports=(report,))
    return NextSteps(messages=(message,))
