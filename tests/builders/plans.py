"""What plans are made from: a View of a few objects, and gangs that were submitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.lifecycle import LifecycleMessage
from contracts.messages import GatesOpened, Place, PodRef, SubmitGang
from contracts.names import GANG
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, SubmittedGang
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, View, claim_keys, is_gated
from tests.builders.decisions import CLUSTER, gang_allocated
from tests.builders.gangs import gang, member, member_claim
from tests.builders.values import NAMESPACE, NODE, UID

NOW = "2026-11-20T12:00:00Z"
TRAIN = GroupKey(NAMESPACE, "train")


def view_of(
    pods: Iterable[Pod] = (),
    claims: Iterable[ResourceClaim] = (),
    gangs: Iterable[Gang] = (),
    nodes: Iterable[str] | Mapping[str, Mapping[str, str]] = (NODE,),
) -> View:
    """Make a View of these objects; nodes by name, or with their labels."""
    view = View()
    labels = nodes if isinstance(nodes, Mapping) else {key: {} for key in nodes}
    for name, of_node in labels.items():
        view.apply_node(name, KnownNode(labels=of_node))
    for claim in claims:
        view.apply_claim(f"{claim.metadata.namespace}/{claim.metadata.name}", claim)
    for pod in pods:
        view.apply_pod(f"{pod.metadata.namespace}/{pod.metadata.name}", pod)
    for item in gangs:
        view.apply_gang(f"{item.metadata.namespace}/{item.metadata.name}", item)
    return view


def context_of(view: View, *records: PodGangRecord) -> PlanContext:
    """Make what a plan for the gang `train` is made from; all claims are ours."""
    return PlanContext(
        cluster=CLUSTER,
        group=TRAIN,
        view=view,
        records=records,
        owns=lambda _: True,
        now=NOW,
    )


def context_about(view: View, pod: Pod) -> PlanContext:
    """Make what a plan for the pods that one is looked at with is made from."""
    return replace(context_of(view), group=view.group_of(pod))


def submission_of(pods: Sequence[Pod] = (), *, count: int = 0) -> SubmitGang:
    """Submit pods, each with one device for its claim `gpus`; none: before they are."""
    worker = member(member_claim(), count=count or len(pods))
    places = {
        "worker": tuple(
            Place(
                pods=(PodRef(name=pod.metadata.name, uid=pod.metadata.uid),),
                claims=(claim_keys(pod)["gpus"].partition("/")[2],),
            )
            for pod in pods
        )
    }
    submitted = gang(worker)
    submitted.metadata.labels[GANG] = "train"
    return SubmitGang(
        cluster=CLUSTER, uid=GangUID(UID), gang=submitted, places=places if pods else {}
    )


def record_of(*messages: LifecycleMessage) -> PodGangRecord:
    """Fold what was said of a gang, in this order."""
    record = PodGangRecord.of(messages[0])
    for sequence, message in enumerate(messages, start=1):
        record = record.apply(message, sequence)
    return record


def opened_record_of(submission: SubmitGang, *, opened: int) -> PodGangRecord:
    """Let a gang be decided, and the gates of so many of its pods be open."""
    uid = submission.uid
    pods = sum(member.count for member in submission.gang.spec.members)
    decision = replace(gang_allocated(pods=pods), uid=uid)
    said = GatesOpened(
        cluster=CLUSTER,
        namespace=decision.namespace,
        uid=uid,
        attempt=1,
        state=1,
        pods=opened,
    )
    return record_of(submission, decision, said)


def gang_of(record: PodGangRecord, *pods: Pod) -> SubmittedGang:
    """Let a gang have these pods; those without a gate run for it."""
    return SubmittedGang(
        record=record,
        pods=pods,
        opened=tuple(pod for pod in pods if not is_gated(pod)),
        requested=pods,
        is_reserved=not record.pods,
    )
