"""Pods that differ from their PodGroup in what kube-scheduler wants alike.

It binds none of them, for ever: no such field can be changed, of pods or of PodGroups.
So no device is held for them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import OwnerKey
from contracts.workload import Pod, PodSpec
from publisher.gangs.context import PlanContext
from publisher.gangs.submit.readiness import NotReady

PRIORITY_DIFFERS = "PriorityDiffers"
_POLICY = "PreemptLowerPriority"
"""Of pods that say none (core/v1)."""
_THEN = "kube-scheduler binds no pod of such a group; create it anew with equal values"


def find_disagreement(pods: Iterable[Pod], context: PlanContext) -> NotReady | None:
    """Return the first pod whose priority or preemptionPolicy its PodGroup has not.

    None: they agree, or are of no PodGroup that is seen and says these.
    """
    for pod in pods:
        text = _compare(pod, context)
        if text:
            return NotReady(reason=PRIORITY_DIFFERS, message=f"{text}: {_THEN}")
    return None


def _compare(pod: Pod, context: PlanContext) -> str:
    """Describe what differs; empty: nothing."""
    meta, scheduled_with = pod.metadata, pod.spec.scheduling_group
    name = None if scheduled_with is None else scheduled_with.pod_group_name
    key = OwnerKey("PodGroup", meta.namespace, name or "")
    group = context.view.owners.find(key, "") if name else None
    if group is None:
        return ""
    for field, own, of_group in _list_fields(pod.spec, group):
        if own != of_group:
            return (
                f"pod {meta.name} has {field} {own or 'none'}, PodGroup {name} has "
                f"{of_group or 'none'}"
            )
    return ""


def _list_fields(spec: PodSpec, group: GangOwner) -> Iterator[tuple[str, str, str]]:
    """Go through what both say: the field, of the pod, of its PodGroup.

    Before the API server has set priorities, their classes tell.
    """
    is_set = spec.priority is not None or not spec.priority_class_name
    if group.priority is not None and is_set:
        yield "priority", str(spec.priority or 0), str(group.priority)
    elif group.priority is None and spec.priority is None:
        yield "priorityClassName", spec.priority_class_name, group.priority_class
    if group.preemption_policy is not None:
        own = spec.preemption_policy or _POLICY
        yield "preemptionPolicy", own, group.preemption_policy
