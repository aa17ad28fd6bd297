"""How the pods of each group ended, as they said last. Knows no plan.

A pod that is preempted or evicted is gone within its grace period, and nothing says why
any more: whoever looks only at the pods that are there finds fewer, and no cause.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from contracts.ids import NodeName
from contracts.names import GANG_UID
from contracts.pods.membership import Membership
from contracts.workload import Pod, PodCondition

_KEPT = 10_000
"""So many ends are remembered; the oldest are forgotten first."""
_TARGET = "DisruptionTarget"
_REJECTED = "Pod was rejected: "
_WORDS = 500
"""Characters of a condition's message."""
GroupT = TypeVar("GroupT", bound=Hashable)


class Rejection(Struct, frozen=True, kw_only=True):
    """That the kubelet of its node did not let a pod in, though it was bound there.

    Source: `rejectPod` of kubelet; the reason is that of its admission handler, such as
    UnexpectedAdmissionError, OutOfcpu or TopologyAffinityError.
    """

    node: NodeName
    state: str
    """Digest of the node as it was then."""
    message: str
    at: str
    """RFC 3339."""


class PodEnd(Struct, frozen=True, kw_only=True):
    """How a pod ended that had passed our gate."""

    uid: str
    name: str
    gang: str
    """The uid of the gang that it ran for."""
    run: str
    """Of which run of its owner it was."""
    role: str
    """What it was there; empty: like all others."""
    maker: str
    """The uid of its controller; empty: it had none."""
    has_finished: bool = False
    """True if its containers ended by themselves."""
    reason: str = ""
    """Why Kubernetes ended it (condition DisruptionTarget); empty: it did not."""
    message: str = ""
    rejection: Rejection | None = None
    """None: kubelet took it."""

    @property
    def is_disrupted(self) -> bool:
        """True if Kubernetes ended it, for the sake of others."""
        return bool(self.reason)


class EndedPods(Generic[GroupT]):
    """The ends of pods by group, in the order in which they were seen."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, GroupT] = OrderedDict()
        """By the uid of the pod, the oldest end first."""
        self._ends: dict[GroupT, dict[str, PodEnd]] = {}

    def note(
        self,
        group: GroupT,
        membership: Membership,
        pod: Pod,
        *,
        has_ended: bool,
        state: str = "",
    ) -> None:
        """Take in a pod that is over or gone; `has_ended`: its containers have ended.

        `state` is the digest of its node.

        What was seen first counts: a finished pod is deleted in the end. Only that
        Kubernetes ended a pod may be said later, while it is being deleted.
        """
        meta, target = pod.metadata, _find_target(pod)
        uid = meta.uid
        known = self._ends.get(group, {}).get(uid)
        is_news = known is None or (
            target is not None and not known.has_finished and not known.reason
        )
        if not is_news:
            return
        is_deleted = meta.deletion_timestamp is not None
        succeeded = has_ended and pod.status.phase == "Succeeded" and not is_deleted
        if succeeded:
            target = None
        end = PodEnd(
            uid=uid,
            name=meta.name,
            gang=meta.annotations.get(GANG_UID, ""),
            run=membership.run,
            role=membership.role,
            maker=meta.controller.uid,
            has_finished=has_ended and not is_deleted and target is None,
            reason="" if target is None else target.reason or _TARGET,
            message="" if target is None else target.message[:_WORDS],
            rejection=_find_rejection(pod, state),
        )
        self._ends.setdefault(group, {})[uid] = end
        self._groups[uid] = group
        if len(self._groups) > _KEPT:
            self._forget_oldest()

    def of(self, group: GroupT) -> tuple[PodEnd, ...]:
        """Return the ends of a group's pods, oldest first."""
        return tuple(self._ends.get(group, {}).values())

    def _forget_oldest(self) -> None:
        uid, group = self._groups.popitem(last=False)
        ends = self._ends[group]
        del ends[uid]
        if not ends:
            del self._ends[group]


def is_rejected(pod: Pod) -> bool:
    """True if kubelet did not let a pod in that was bound to its node."""
    status = pod.status
    said = status.reason and status.message.startswith(_REJECTED)
    return bool(status.phase == "Failed" and pod.spec.node_name and said)


def _find_rejection(pod: Pod, state: str) -> Rejection | None:
    if not is_rejected(pod) or not pod.status.start_time:
        return None
    words = pod.status.message.removeprefix(_REJECTED)
    return Rejection(
        node=pod.spec.node_name or NodeName(""),
        state=state,
        message=f"{pod.status.reason}: {words}"[:_WORDS],
        at=pod.status.start_time,
    )


def _find_target(pod: Pod) -> PodCondition | None:
    """Return the condition by which Kubernetes says that it ends a pod (KEP-3329)."""
    for condition in pod.status.conditions:
        if (condition.type, condition.status) == (_TARGET, "True"):
            return condition
    return None
