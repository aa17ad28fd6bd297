"""Pods that differ from their PodGroup, or those above, in what must be alike.

kube-scheduler binds none of them, for ever: no such field can be changed, of pods or of
PodGroups. So no device is held for them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import pod_group_of
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
    key = pod_group_of(pod)
    owners = context.view.owners
    own_group = None if key is None else owners.find(key, "")
    if key is None or own_group is None:
        return ""
    for group in (own_group, *owners.trees.list_ancestors(key)):
        for field, own, of_group in _list_fields(pod.spec, group):
            if own != of_group:
                return (
                    f"pod {pod.metadata.name} has {field} {own or 'none'}, "
                    f"{group.key.kind} {group.key.name} has {of_group or 'none'}"
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
