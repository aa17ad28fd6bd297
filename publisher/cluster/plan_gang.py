"""What comes next for one group of pods: for each of its submissions, and new ones.

A pod belongs to at most one submission that is alive; pods that none takes care of are
gathered until the gang is whole, then submitted. Pods that replace others, and those
whose devices somebody freed before they ran, are submitted again as a gang of their
own. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from contracts.gang import GangPhase
from contracts.messages import SubmitGang
from contracts.workload import Pod
from publisher.cluster.assemble import Gathered, Ready, Waiting, assemble, gang_uid
from publisher.cluster.plan_claims import plan_prepare
from publisher.cluster.plan_submission import (
    GangPlan,
    Situation,
    Standing,
    Told,
    claims_of,
    lacks_claims,
    plan_submission,
)
from publisher.cluster.plan_upkeep import plan_upkeep
from publisher.cluster.submissions import Submission
from publisher.cluster.view import claim_keys, is_gated, is_over

WAITING = "Waiting"
"""Phase of a gang whose pods are not all there."""


def plan_gang(situation: Situation) -> GangPlan:
    """Say what may be done now for the pods of a group."""
    plan = GangPlan()
    pods = situation.view.pods(situation.group)
    by_uid = {pod.metadata.uid: pod for pod in pods}
    plan_upkeep(pods, situation.view, plan)
    kept: set[str] = set()
    taken = _taken(situation.submissions)
    for submission in situation.submissions:
        if submission.message is None or not submission.pods:
            continue
        theirs = submission.pods - (taken if submission.is_ending else frozenset())
        here = [by_uid[uid] for uid in sorted(theirs & by_uid.keys())]
        standing = Standing(submission=submission, pods=tuple(here))
        kept |= plan_submission(situation, standing, plan)
    wanting = [
        pod
        for pod in pods
        if pod.metadata.uid not in kept and _wants_devices(situation, pod)
    ]
    if wanting:
        _plan_new(situation, wanting, _others(pods, wanting), plan)
    elif not pods and situation.view.gang(situation.group) is not None:
        plan.told.append(
            Told(phase=WAITING, reason="PodsMissing", message="no pod is there yet")
        )
    return plan


def _taken(submissions: Sequence[Submission]) -> frozenset[str]:
    """Give the uids of pods that a submission asks or asked for and still wants.

    One that ends must not undo what was allocated for another.
    """
    alive = (item.pods for item in submissions if not item.is_ending)
    return frozenset().union(*alive)


def _wants_devices(situation: Situation, pod: Pod) -> bool:
    if is_over(pod):
        return False
    lost = not pod.spec.node_name and lacks_claims(pod, situation.view, situation.owns)
    return is_gated(pod) or lost


def _others(pods: Sequence[Pod], wanting: Sequence[Pod]) -> int:
    """Count the pods that make the gang whole beside those that want devices."""
    uids = {pod.metadata.uid for pod in wanting}
    return sum(
        pod.metadata.uid not in uids
        and (not is_over(pod) or pod.status.phase == "Succeeded")
        for pod in pods
    )


def _plan_new(
    situation: Situation, pods: Sequence[Pod], others: int, plan: GangPlan
) -> None:
    view = situation.view
    plan.patches += plan_prepare(claims_of(pods), view)
    gathered = Gathered(
        pods=tuple(pods), others=others, gang=view.gang(situation.group)
    )
    found = assemble(gathered, view.claim, situation.owns)
    match found:
        case Waiting(reason=reason, message=message):
            told = Told(
                phase=WAITING, reason=reason, message=message, pods=gathered.pods
            )
            plan.told.append(told)
        case Ready():
            plan.messages.append(_submission(situation, gathered, found))
            plan.told.append(Told(phase=GangPhase.PENDING, pods=gathered.pods))


def _submission(situation: Situation, gathered: Gathered, ready: Ready) -> SubmitGang:
    """Name the gang after its pods, so that two publishers submit the same.

    Pods that lost their devices are asked for again under another name: it holds the
    versions of the claims that they lost.
    """
    named = [pod.metadata.uid for pod in gathered.pods]
    for pod in gathered.pods:
        if not is_gated(pod):
            claims = map(situation.view.claim, claim_keys(pod).values())
            named += [c.metadata.resource_version for c in claims if c is not None]
    return SubmitGang(
        cluster=situation.cluster,
        uid=gang_uid(str(situation.group), named),
        gang=ready.gang,
        submitted_at=situation.now,
        places=ready.places,
    )
