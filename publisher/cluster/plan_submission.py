"""What comes next for one submitted gang: claims, confirmation, gates, confirmation.

Gives only what may be done now: no gate before every claim is written and confirmed,
no refusal before what was written is undone. Everything follows from what is observed,
so the publisher may end at any line and another go on. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.claim import ResourceClaim
from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID
from contracts.messages import (
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    CommandMessage,
    ConfirmationMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    PodWritten,
    ReleaseGang,
    SubmitGang,
)
from contracts.workload import Pod
from publisher.cluster.members import Owns
from publisher.cluster.patches import Patch
from publisher.cluster.plan_claims import (
    Assignment,
    allocation_of,
    assignments_of,
    plan_claims,
    plan_prepare,
    plan_undo,
)
from publisher.cluster.plan_gates import plan_gates
from publisher.cluster.submissions import OURS, Submission
from publisher.cluster.view import GroupKey, View, claim_keys, is_gated, is_over
from publisher.errors import DecisionError

GangMessage = SubmitGang | CommandMessage | ConfirmationMessage
SHOWN = 500
"""Characters of a reason that travel."""


class Told(Struct, frozen=True, kw_only=True):
    """What the author of some pods should know now."""

    phase: str
    reason: str = ""
    """One word; empty: all is well."""
    message: str = ""
    pods: tuple[Pod, ...] = ()
    """Those that wait because of this."""
    decision: GangAllocated | None = None


class GangPlan(Struct, kw_only=True):
    """What may be done now: writes first, then messages; then look again."""

    patches: list[Patch] = []
    removals: list[Pod] = []
    """Pods to delete, so that whoever made them makes new ones."""
    messages: list[GangMessage] = []
    told: list[Told] = []
    forget: list[GangUID] = []
    """Submissions of which nothing is left."""


class Situation(Struct, frozen=True, kw_only=True):
    """What is known of a group of pods, and how this publisher is set up."""

    cluster: ClusterName
    group: GroupKey
    view: View
    submissions: tuple[Submission, ...]
    owns: Owns
    now: str
    """RFC 3339, whole seconds, UTC."""
    refused: Callable[[GangUID, int], str] = lambda _uid, _attempt: ""
    """Why the API server refused to take an attempt; empty: it did not."""


class Standing(Struct, frozen=True, kw_only=True):
    """A submission, and its pods as they are now."""

    submission: Submission
    pods: tuple[Pod, ...]
    """Those that are still there."""

    @property
    def waiting(self) -> tuple[Pod, ...]:
        """Pods behind our gate."""
        return tuple(p for p in self.pods if is_gated(p) and not is_over(p))

    @property
    def opened(self) -> tuple[Pod, ...]:
        """Pods whose gate is open, whatever became of them."""
        return tuple(p for p in self.pods if not is_gated(p))

    @property
    def whole(self) -> bool:
        """Whether every pod that was submitted still waits."""
        return len(self.waiting) == len(self.submission.pods)


def plan_submission(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Add what comes next to the plan; gives the uids of pods that it takes care of.

    The others may be submitted again.
    """
    submission = standing.submission
    if submission.is_over:
        return _plan_over(situation, standing, plan)
    if submission.is_open:
        return _plan_running(situation, standing, plan)
    waiting = claims_of(standing.waiting)
    if submission.command is not None:
        plan.patches += plan_undo(waiting, situation.view)
        kept = not standing.opened and standing.whole
        return submission.pods if kept else frozenset()
    useless = _useless(situation, standing)
    if useless:
        plan.patches += plan_undo(waiting, situation.view)
        reason = f"{OURS}{useless}"
        plan.messages.append(
            CancelGang(**_address(situation, submission), reason=reason)
        )
        return frozenset()
    decision = submission.allocated
    if decision is not None:
        _plan_decided(situation, standing, decision, plan)
    else:
        plan.patches += plan_undo(waiting, situation.view)
        plan.patches += plan_prepare(waiting, situation.view)
        plan.told.append(_pending(submission, standing.pods))
    return submission.pods


def claims_of(pods: Iterable[Pod]) -> list[str]:
    """Name the claims of pods."""
    return [key for pod in pods for key in claim_keys(pod).values()]


def lacks_claims(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether a pod has a claim of ours that holds nothing."""
    found = (view.claim(key) for key in claim_keys(pod).values())
    return any(_is_free(claim) and owns(claim) for claim in found if claim is not None)


def _is_free(claim: ResourceClaim) -> bool:
    return allocation_of(claim) is None and not claim.metadata.deletion_timestamp


def _useless(situation: Situation, standing: Standing) -> str:
    """Say why nobody needs the submission any more; empty: it is needed."""
    wanted = len(standing.submission.pods)
    if standing.opened:
        needy = (
            is_gated(pod) or lacks_claims(pod, situation.view, situation.owns)
            for pod in standing.pods
            if not is_over(pod)
        )
        written = standing.submission.is_written
        return "" if written or any(needy) else "nothing is left to allocate"
    if standing.whole:
        return ""
    gone = wanted - len(standing.waiting)
    return f"{gone} of {wanted} pods are gone"


def _plan_over(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Leave nothing behind, and keep the pods that should not be asked for again."""
    submission = standing.submission
    undo = list(plan_undo(claims_of(standing.waiting), situation.view))
    plan.patches += undo
    if isinstance(submission.decision, GangReleased):
        if not undo and not isinstance(submission.confirmation, ClaimsReleased):
            plan.messages.append(ClaimsReleased(**_address(situation, submission)))
            return submission.pods
        if not (standing.whole and submission.is_cancelled_by_others):
            if not undo and not standing.waiting:
                plan.forget.append(submission.uid)
            return frozenset()
        message = "the gang was cancelled; delete its pods to try again"
        plan.told.append(
            Told(
                phase=GangPhase.CANCELLED,
                reason="Cancelled",
                message=message,
                pods=standing.waiting,
            )
        )
        return submission.pods
    if not standing.pods:
        plan.forget.append(submission.uid)
    plan.told.append(_pending(submission, standing.waiting))
    return submission.pods


def _plan_decided(
    situation: Situation, standing: Standing, decision: GangAllocated, plan: GangPlan
) -> None:
    """Write claims, say so, open gates, say so: one of these at a time."""
    submission, view = standing.submission, situation.view
    try:
        assignments = _here(_assignments(decision, submission), standing.pods)
        claims = plan_claims(assignments, view, situation.now)
        refusal = "; ".join(claims.refusals)
    except DecisionError as error:
        refusal = error.reason
        assignments, claims = (), None
    refusal = refusal or situation.refused(submission.uid, decision.attempt)
    told = Told(phase=GangPhase.DECIDED, decision=decision, pods=standing.waiting)
    if refusal or claims is None:
        _plan_refused(situation, standing, decision, refusal[:SHOWN], plan)
        return
    plan.told.append(told)
    if claims.patches:
        plan.patches += _of_attempt(claims.patches, decision)
    elif not submission.is_written:
        written = AllocationWritten(
            **_address(situation, submission), attempt=decision.attempt
        )
        pods = tuple(_written(assignments, view, decision.namespace))
        plan.messages.append(written.naming(pods))
    else:
        gates = _of_attempt(plan_gates(decision, assignments, view), decision)
        plan.patches += gates
        if not gates:
            plan.messages.append(
                GatesOpened(
                    **_address(situation, submission), attempt=decision.attempt, state=0
                )
            )


def _of_attempt(patches: Iterable[Patch], decision: GangAllocated) -> list[Patch]:
    """Say whose decision writes carry out."""
    uid, attempt = decision.uid, decision.attempt
    return [replace(patch, gang=uid, attempt=attempt) for patch in patches]


def _plan_refused(
    situation: Situation,
    standing: Standing,
    decision: GangAllocated,
    refusal: str,
    plan: GangPlan,
) -> None:
    """Undo all of an attempt, then have the gang decided again.

    Once a gate is open there is no way back: the rest waits, and its author is told.
    """
    if standing.opened:
        told = Told(
            phase=GangPhase.WRITTEN,
            reason="PlacementLost",
            message=refusal,
            pods=standing.pods,
            decision=decision,
        )
        plan.told.append(told)
        return
    undo = list(plan_undo(claims_of(standing.waiting), situation.view))
    plan.patches += undo
    if not undo:
        plan.messages.append(
            AllocationRefused(
                **_address(situation, standing.submission),
                attempt=decision.attempt,
                reason=refusal,
            )
        )


def _plan_running(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Watch over pods whose gates are open; give up those whose devices were lost."""
    submission, view = standing.submission, situation.view
    alive = [pod for pod in standing.pods if not is_over(pod)]
    if not alive:
        if submission.command is None:
            plan.messages.append(ReleaseGang(**_address(situation, submission)))
        return submission.pods
    lost = [pod for pod in alive if lacks_claims(pod, view, situation.owns)]
    told = Told(phase=GangPhase.RUNNING, decision=submission.allocated)
    if lost:
        names = ", ".join(pod.metadata.name for pod in lost[:5])
        message = f"somebody freed the devices of {len(lost)} of {len(alive)} pods"
        told = replace(told, reason="PlacementLost", message=f"{message}: {names}")
    if lost and _recreates(submission):
        message = f"{told.message}; all are deleted, as spec.recovery says"
        plan.told.append(replace(told, message=message, pods=tuple(alive)))
        plan.removals += alive
        return submission.pods
    plan.told.append(replace(told, pods=tuple(lost)))
    unbound = {pod.metadata.uid for pod in lost if not pod.spec.node_name}
    return submission.pods - unbound


def _recreates(submission: Submission) -> bool:
    message = submission.message
    return message is not None and message.gang.spec.recovery == "Recreate"


def _assignments(
    decision: GangAllocated, submission: Submission
) -> tuple[Assignment, ...]:
    if submission.message is None:
        raise DecisionError(decision.uid, "there is no submission")
    return assignments_of(decision, submission.message)


def _here(
    assignments: Iterable[Assignment], pods: Sequence[Pod]
) -> tuple[Assignment, ...]:
    """Leave out the places whose pods are all gone or over."""
    uids = {pod.metadata.uid for pod in pods if not is_over(pod)}
    return tuple(a for a in assignments if any(ref.uid in uids for ref in a.pods))


def _written(
    assignments: Iterable[Assignment], view: View, namespace: str
) -> Iterator[PodWritten]:
    """Name the pods and claims that the decision became."""
    for item in assignments:
        for ref in item.pods:
            pod = view.pod(f"{namespace}/{ref.name}")
            if pod is None:
                continue
            claims = {
                name: key.partition("/")[2] for name, key in claim_keys(pod).items()
            }
            yield PodWritten(
                member=item.member, index=item.index, pod=ref.name, claims=claims
            )


def _pending(submission: Submission, pods: Sequence[Pod]) -> Told:
    decision = submission.decision
    phase = GangPhase.PENDING
    reasons: tuple[Reason, ...] = ()
    if isinstance(decision, GangRejected | GangPending):
        reasons = decision.reasons
    if isinstance(decision, GangRejected):
        phase = GangPhase.REJECTED
    if isinstance(submission.confirmation, AllocationRefused) and not reasons:
        reason, message = "AllocationRefused", submission.confirmation.reason
    elif reasons:
        reason, message = str(reasons[0].rule), "; ".join(map(str, reasons))
    else:
        reason, message = "Undecided", "the solver has not decided yet"
    return Told(phase=phase, reason=reason, message=message[:SHOWN], pods=tuple(pods))


def _address(situation: Situation, submission: Submission) -> dict[str, Any]:
    return {
        "cluster": situation.cluster,
        "namespace": situation.group.namespace,
        "uid": submission.uid,
    }
