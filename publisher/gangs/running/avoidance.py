"""Pods that kube-scheduler refuses, and nodes that their gang avoids because of that.

The gates of such pods cannot be closed again, nor their pins moved: whatever is in the
way must go. A refusal does not count while it may pass by itself: kube-scheduler makes
room for the pod (preemption), or is about to bind it. A device that cannot be attached
to the node (KEP-5007) counts at once.

A node whose kubelet rejects a pod is avoided like one that kube-scheduler refuses.

A node is avoided for a while, until it changes, and only while there are other nodes.
The list is kept on the bus, so that it outlives pods and publishers; a submission
repeats which nodes its members leave out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.avoidance import AVOID_S, NodesAvoided
from contracts.counts import counted
from contracts.gang import KUBELET, AvoidedNode
from contracts.ids import GangUID, Namespace
from contracts.messages import MAX_REASON, SubmitGang
from contracts.names import GANG_UID
from contracts.workload import Pod, PodCondition
from publisher.gangs.claims import FailedDevice, find_awaited_device, find_failed_device
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.ended_pods import is_rejected
from publisher.gangs.node_affinity import pinned_node_of
from publisher.gangs.view import claim_keys, is_gated, is_over
from publisher.times import seconds_between

SCHEDULER_REFUSED = "SchedulerRefused"
"""The reason that people read."""
_SCHEDULED = "PodScheduled"
_GATED = "SchedulingGated"
MOST_AVOIDED = 100
"""Nodes, those that refused first: each costs a term of the members' affinity."""
_POD = "Pod"
"""No label has a `/`, and no API that makes gangs this name."""
_TIMED_OUT = "device binding timeout"
"""kube-scheduler's plugin DynamicResources: ErrDeviceBindingTimeout."""
_AGAIN_S = 30.0
"""How often it is looked whether an avoided node has changed."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 3600.0
"""Between two times that the pods of a gang are made anew: it doubles."""


def find_refusal(pod: Pod) -> PodCondition | None:
    """Return why kube-scheduler refuses a pod of ours; None: it does not.

    Sources: core/v1 `PodScheduled`, whose reasons are Unschedulable, SchedulerError and
    those of other schedulers; `status.nominatedNodeName` (KEP-5278).
    """
    held = pod.spec.scheduling_gates or pod.status.nominated_node_name
    if held or not is_pinned(pod):
        return None
    for condition in pod.status.conditions:
        if condition.type == _SCHEDULED and condition.reason != _GATED:
            return condition if condition.status == "False" else None
    return None


def is_pinned(pod: Pod) -> bool:
    """True if our gate is open for a pod, and it is not bound yet."""
    opened = GANG_UID in pod.metadata.annotations and not is_gated(pod)
    return opened and not is_over(pod) and not pod.spec.node_name


def find_failure(context: PlanContext, pod: Pod) -> FailedDevice | None:
    """Return a device of a pod that cannot be attached for it; None: there is none.

    kube-scheduler says so as well if it has waited for its driver for too long. It
    counts until it is remembered (`recall_failure`), though the claim was freed since.
    """
    if not is_pinned(pod):
        return None
    view, keys = context.view, tuple(claim_keys(pod).values())
    claims = [view.claim(key) for key in keys]
    failed = next(filter(None, map(find_failed_device, claims)), None)
    refusal = find_refusal(pod)
    if failed is None and refusal is not None and _TIMED_OUT in refusal.message:
        device = next(filter(None, map(find_awaited_device, claims)), None)
        if device is not None:
            return FailedDevice(device=device, message=refusal.message)
    if failed is None and recall_failure(context, pod) is None:
        return view.failures.find(keys)
    return failed


class SeenRefusals:
    """Remembers since when pods are refused, as this publisher saw it.

    No object says it: `PodScheduled` is False from the beginning, because of the gate,
    and keeps that time. After a restart the grace of a refusal begins anew.
    """

    def __init__(self) -> None:
        self._since: dict[str, str] = {}

    def apply(self, uid: str, pod: Pod | None, now: str) -> None:
        """Look at a pod as it is now (None: it is gone); `now` is RFC 3339."""
        if pod is None or not (find_refusal(pod) or is_rejected(pod)):
            self._since.pop(uid, None)
        else:
            self._since.setdefault(uid, now)

    def since(self, uid: str) -> str:
        """Return since when a pod is refused; empty: it is not."""
        return self._since.get(uid, "")


class Avoidance(Struct, frozen=True, kw_only=True):
    """What a gang avoids now."""

    nodes: tuple[AvoidedNode, ...] = ()
    note: str = ""
    """Why nothing is avoided though something was."""


def find_avoidance(context: PlanContext, pods: Sequence[Pod]) -> Avoidance:
    """Return the nodes that the gang of these pods avoids now; never all nodes."""
    said = context.avoided(_name_of(context, pods))
    nodes = () if said is None else tuple(_list_in_force(said, context))
    names = {node.node for node in nodes}
    if nodes and context.view.nodes.names <= names:
        every = (
            "the only node" if len(names) == 1 else f"all {counted(len(names), 'node')}"
        )
        note = f"pods were refused on {every}, so none is avoided"
        return Avoidance(note=f"{note} any more: {nodes[-1].message}")
    return Avoidance(nodes=nodes)


def recall_failure(context: PlanContext, pod: Pod) -> AvoidedNode | None:
    """Return which device could not be attached for a pod last; None: none is known."""
    said = context.avoided(_name_of(context, context.pods))
    if said is None or not is_pinned(pod):
        return None
    uid = pod.metadata.uid
    failed = (n for n in reversed(said.nodes) if n.device and n.pod_uid == uid)
    return next(failed, None)


def find_end(context: PlanContext, submission: SubmitGang, pods: Sequence[Pod]) -> str:
    """Name a node that a submission leaves out and may have again; empty: none."""
    if not submission.avoided:
        return ""
    avoided = {node.node for node in find_avoidance(context, pods).nodes}
    ended = (n.node for n in submission.avoided if n.node not in avoided)
    return next((f"node {node} is not avoided any more" for node in ended), "")


def plan_avoidance(
    context: PlanContext, refused: Sequence[Pod], recreations: int = 0
) -> NextSteps:
    """Remember the nodes on which pods are refused; forget those that took them.

    Also those whose kubelet rejected pods, as far as that is to be remembered yet.

    `recreations`: so often is it made anew now for what may happen again.
    """
    pods = context.pods
    said = context.avoided(_name_of(context, pods))
    known = () if said is None else said.nodes
    new = {
        _key_of(node): node
        for node in (
            *(describe_refusal(context, pod) for pod in refused),
            *_list_rejections(context),
        )
        if not any(_is_same(node, other, context) for other in known)
    }
    bound = {
        pod.metadata.uid for pod in pods if pod.spec.node_name and not is_rejected(pod)
    }
    kept = [n for n in known if _key_of(n) not in new and n.pod_uid not in bound]
    in_force = (node for node in kept if _is_in_force(node, context))
    nodes = (*in_force, *new.values())[:MOST_AVOIDED]
    is_news = (new or len(kept) < len(known)) and nodes != known
    message = said or _avoid_nothing(context, pods)
    if is_news:
        message = replace(message, nodes=nodes)
    if recreations:
        count = message.recreations + recreations
        message = replace(message, recreations=count, recreated_at=context.now)
    is_waited_for = new or any(_is_in_force(node, context) for node in known)
    return NextSteps(
        messages=(message,) if is_news or recreations else (),
        look_again_s=_AGAIN_S if is_waited_for else None,
    )


def count_recreations(context: PlanContext, pods: Sequence[Pod]) -> int:
    """Count how often the pods of a gang were made anew for what may happen again."""
    said = context.avoided(_name_of(context, pods))
    return 0 if said is None else said.recreations


def pause_left_s(context: PlanContext, pods: Sequence[Pod]) -> float:
    """Return how long the pods of a gang are not made anew, as they just were."""
    said = context.avoided(_name_of(context, pods))
    if said is None or not said.recreations:
        return 0.0
    doubled_s = _FIRST_PAUSE_S * 2.0 ** min(said.recreations - 1, 10)
    pause_s: float = min(doubled_s, _LONGEST_PAUSE_S)
    return max(0.0, pause_s - seconds_between(said.recreated_at, context.now))


def _name_of(context: PlanContext, pods: Sequence[Pod]) -> str:
    """Name a gang so that it keeps the name however often its pods are made anew.

    Pods without a gang share that of what makes them, and never one with a gang.
    """
    group = context.group
    if group.lone:
        owners = (pod.metadata.controller.uid for pod in pods)
        return f"{_POD}/{next(filter(None, owners), group.name)}"
    return "/".join(filter(None, (group.api, group.name)))


def _avoid_nothing(context: PlanContext, pods: Sequence[Pod]) -> NodesAvoided:
    return NodesAvoided(
        cluster=context.cluster,
        namespace=Namespace(context.group.namespace),
        name=_name_of(context, pods),
    )


def describe_refusal(context: PlanContext, pod: Pod) -> AvoidedNode:
    """Describe why a pod cannot run on the node that it is pinned to."""
    node, refusal = pinned_node_of(pod), find_refusal(pod)
    failure = find_failure(context, pod)
    words = "" if refusal is None else refusal.message or refusal.reason
    return AvoidedNode(
        node=node,
        state=context.view.nodes.state(node),
        pod=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        gang=GangUID(pod.metadata.annotations.get(GANG_UID, "")),
        device="" if failure is None else str(failure.device),
        message=(words if failure is None else failure.message)[:MAX_REASON],
        since=context.now,
    )


def _list_rejections(context: PlanContext) -> Iterator[AvoidedNode]:
    """Go through nodes whose kubelet rejected pods, as long as they are avoided."""
    for end in context.view.ended.of(context.group):
        if end.rejection is None:
            continue
        avoided = AvoidedNode(
            node=end.rejection.node,
            state=end.rejection.state,
            pod=end.name,
            pod_uid=end.uid,
            gang=GangUID(end.gang),
            message=f"{KUBELET}{end.rejection.message}"[:MAX_REASON],
            # A kubelet that starts again may reject what ran for long.
            since=context.refused_since(end.uid) or end.rejection.at,
        )
        if _is_in_force(avoided, context):
            yield avoided


def _key_of(node: AvoidedNode) -> tuple[str, ...]:
    """Return what is remembered once: a node, or a device that failed for a pod."""
    return (node.node, node.device, node.pod_uid if node.device else "")


def _is_same(new: AvoidedNode, known: AvoidedNode, context: PlanContext) -> bool:
    """True if what is found is known, and need not be said again yet.

    Whoever was refused there first: others of the same name add no time to it.
    """
    if new.node != known.node or (new.device and _key_of(new) != _key_of(known)):
        return False
    young = seconds_between(known.since, context.now) < _AGAIN_S
    return young or _is_in_force(known, context)


def _list_in_force(said: NodesAvoided, context: PlanContext) -> Iterable[AvoidedNode]:
    return (node for node in said.nodes if _is_in_force(node, context))


def _is_in_force(node: AvoidedNode, context: PlanContext) -> bool:
    """True if a node is avoided: for its time, while it is there and as it was."""
    view = context.view
    if node.node not in view.nodes or view.nodes.state(node.node) != node.state:
        return False
    return abs(seconds_between(node.since, context.now)) < AVOID_S
