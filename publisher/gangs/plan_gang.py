"""What comes next for one group of pods: for each of its submissions, and new ones.

A pod belongs to the newest submission that asked for it, and to none once that one is
given up; pods that none takes care of are gathered until the gang is whole, then
submitted. Pods that replace others, and those whose devices somebody freed before they
ran, are submitted again by themselves. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.messages import SubmitGang
from contracts.names import GANG_UID
from contracts.pods.members import group_connected
from contracts.workload import Pod
from publisher.gangs.gang_size import count_others
from publisher.gangs.gather import Gathered, Ready, assemble, gang_uid
from publisher.gangs.plan_claims import plan_afresh
from publisher.gangs.plan_ended import (
    cancelled,
    elsewhere,
    is_displaced,
    plan_commanded,
    plan_over,
    plan_running,
)
from publisher.gangs.plan_repairs import plan_upkeep
from publisher.gangs.plan_reserved import plan_hold, plan_late
from publisher.gangs.plan_submitted import plan_submission
from publisher.gangs.situation import (
    WAITING,
    GangPlan,
    Situation,
    Standing,
    StatusReport,
)
from publisher.gangs.submissions import Submission
from publisher.gangs.view import claim_keys, is_gated, is_over, uids_of
from publisher.gangs.waiting import Waiting


def plan_gang(situation: Situation) -> GangPlan:
    """Say what may be done now for the pods of a group."""
    plan = GangPlan()
    pods = situation.view.pods(situation.group)
    plan_upkeep(pods, situation.view, plan)
    kept, idle = _plan_known(situation, pods, plan)
    gang = situation.view.gang(situation.group)
    if gang is not None and gang.spec.hold and plan_hold(situation, gang, plan):
        return plan
    free = [pod for pod in pods if pod.metadata.uid not in kept and not is_over(pod)]
    waiting = [pod for pod in free if is_gated(pod)]
    displaced = [
        pod for pod in free if is_displaced(pod, situation.view, situation.owns)
    ]
    if waiting:
        others = count_others(pods, waiting, idle, situation.submissions)
        _plan_new(situation, waiting, plan, others=others)
    for group in group_connected(displaced, lambda pod: claim_keys(pod).values()):
        _plan_new(situation, group, plan, others=0, alone=True)
    plan.told += elsewhere(situation, free)
    if not pods and not situation.submissions and gang is not None:
        plan.told.append(
            StatusReport(
                phase=WAITING, reason="PodsMissing", message="no pod is there yet"
            )
        )
    return plan


def _plan_known(
    situation: Situation, pods: Sequence[Pod], plan: GangPlan
) -> tuple[set[str], set[str]]:
    """Plan for all submissions; gives the uids of pods that they keep.

    The second set is of those that wait for nothing any more.
    """
    kept: set[str] = set()
    idle: set[str] = set()
    newest = _newest(situation.submissions)
    late = []
    for submission in situation.submissions:
        if not submission.pods:
            late.append(submission)
            continue
        standing = _standing(submission, pods, newest)
        stays = _plan_one(situation, standing, plan) & uids_of(standing.pods)
        kept |= stays
        if submission.is_ending:
            idle |= stays
    finished = {s.uid for s in situation.submissions if s.is_finished}
    asked = {uid for uid, owner in newest.items() if owner not in finished} | kept
    for submission in sorted(late, key=lambda item: (item.in_force is None, item.uid)):
        opened = [pod for pod in pods if _runs_for(pod, submission.uid)]
        waiting = [
            pod
            for pod in pods
            if is_gated(pod) and not is_over(pod)
            if pod.metadata.uid not in asked | kept
        ]
        mine = [pod for pod in opened if pod.metadata.uid not in asked]
        standing = Standing(
            submission=submission,
            pods=(*mine, *waiting),
            runs=tuple(opened),
            named=(),
            late=True,
        )
        stays = plan_late(situation, standing, plan)
        kept |= stays
        if submission.is_ending:
            idle |= stays
    return kept, idle


def _plan_one(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    submission = standing.submission
    if submission.is_over:
        return plan_over(situation, standing, plan)
    if submission.is_open:
        return plan_running(situation, standing, plan)
    if submission.command is not None:
        return plan_commanded(situation, standing, plan)
    return plan_submission(situation, standing, plan)


def _newest(submissions: Iterable[Submission]) -> dict[str, GangUID]:
    """Say which submission each pod belongs to."""
    found: dict[str, GangUID] = {}
    for submission in sorted(submissions, key=lambda item: item.age):
        found |= dict.fromkeys(submission.pods, submission.uid)
    return found


def _standing(
    submission: Submission, pods: Sequence[Pod], newest: dict[str, GangUID]
) -> Standing:
    named = [pod for pod in pods if pod.metadata.uid in submission.pods]
    return Standing(
        submission=submission,
        pods=tuple(p for p in named if newest[p.metadata.uid] == submission.uid),
        runs=tuple(pod for pod in pods if _runs_for(pod, submission.uid)),
        named=tuple(named),
    )


def _runs_for(pod: Pod, uid: GangUID) -> bool:
    return not is_gated(pod) and pod.metadata.annotations.get(GANG_UID) == uid


def _plan_new(
    situation: Situation,
    pods: Sequence[Pod],
    plan: GangPlan,
    *,
    others: int,
    alone: bool = False,
) -> None:
    view = situation.view
    plan.patches += plan_afresh(pods, view, situation.owns)
    generation, uid = _next(situation, pods)
    if situation.forgotten(uid) is False:
        plan.told.append(cancelled(pods))
        return
    gathered = Gathered(
        pods=tuple(pods),
        others=others,
        alone=alone,
        gang=view.gang(situation.group),
        generation=generation,
    )
    found = assemble(gathered, view, situation.owns)
    match found:
        case Waiting(reason=reason, message=message):
            told = StatusReport(
                phase=WAITING, reason=reason, message=message, pods=gathered.pods
            )
            plan.told.append(told)
        case Ready():
            plan.messages.append(_submission(situation, uid, found))
            plan.told.append(StatusReport(phase=GangPhase.PENDING, pods=gathered.pods))


def _next(situation: Situation, pods: Sequence[Pod]) -> tuple[int, GangUID]:
    """Count how often these pods are asked for, and name the gang that they are then.

    It is named after its pods, so that two publishers submit the same.
    """
    name, uids = str(situation.group), uids_of(pods)
    ages = (s.age[0] for s in situation.submissions if not uids.isdisjoint(s.pods))
    generation = 1 + max(ages, default=0)
    while situation.forgotten(uid := gang_uid(name, generation, uids)):
        generation += 1
    return generation, uid


def _submission(situation: Situation, uid: GangUID, ready: Ready) -> SubmitGang:
    return SubmitGang(
        cluster=situation.cluster,
        uid=uid,
        gang=ready.gang,
        submitted_at=situation.now,
        places=ready.places,
    )
