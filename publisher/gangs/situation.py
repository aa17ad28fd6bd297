"""What a plan is made from and what it is: the pods of a group, and what may be done.

Stands alone so that every plan speaks of the same things; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from msgspec import Struct

from contracts.ids import ClusterName, GangUID
from contracts.messages import (
    CommandMessage,
    ConfirmationMessage,
    GangAllocated,
    SubmitGang,
)
from contracts.names import GANG_UID
from contracts.workload import Pod
from publisher.gangs.members import Owns
from publisher.gangs.patches import Patch
from publisher.gangs.submissions import Submission
from publisher.gangs.view import GroupKey, View, is_gated, is_over, uids_of
from publisher.gangs.void_marks import is_void

GangMessage = SubmitGang | CommandMessage | ConfirmationMessage
WAITING = "Waiting"
"""Phase of a gang whose pods are not all there."""
SHOWN = 500
"""Characters of a reason that travel."""


class StatusReport(Struct, frozen=True, kw_only=True):
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
    told: list[StatusReport] = []
    forget: list[GangUID] = []
    """Submissions of which nothing is left."""
    doubted: list[Pod] = []
    """Pods without devices, which may have ended: what claims say comes first."""


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
    forgotten: Callable[[GangUID], bool | None] = lambda _uid: None
    """Of a gang that is over and forgotten, whether its pods are asked for again."""

    def address(self, submission: Submission) -> dict[str, Any]:
        """Give the fields by which messages name a gang."""
        return {
            "cluster": self.cluster,
            "namespace": self.group.namespace,
            "uid": submission.uid,
        }


class Standing(Struct, frozen=True, kw_only=True, dict=True):
    """A submission, and the pods that it is answerable for, as they are now.

    A pod belongs to the newest submission that asks for it, and runs for the one that
    opened its gate.
    """

    submission: Submission
    pods: tuple[Pod, ...]
    """Those that are still there and belong to it."""
    runs: tuple[Pod, ...]
    """Those whose gates were opened for it, whoever asks for them now."""
    named: tuple[Pod, ...]
    """Those that are still there of all that it asked for."""
    late: bool = False
    """Whether it was submitted before its pods: it is not ours to give up."""

    @cached_property
    def by_uid(self) -> dict[str, Pod]:
        """Give its pods by uid."""
        return {pod.metadata.uid: pod for pod in self.pods}

    @cached_property
    def waiting(self) -> tuple[Pod, ...]:
        """Pods behind our gate."""
        return tuple(p for p in self.pods if is_gated(p) and not is_over(p))

    @cached_property
    def waiting_uids(self) -> frozenset[str]:
        """Give the uids of pods behind our gate."""
        return uids_of(self.waiting)

    @cached_property
    def left(self) -> tuple[Pod, ...]:
        """Waiting pods that were not withdrawn for good."""
        uid = self.submission.uid
        return tuple(p for p in self.waiting if not is_void(p, uid))

    @cached_property
    def displaced(self) -> tuple[Pod, ...]:
        """Pods that another submission let through the gate before."""
        uid = self.submission.uid
        return tuple(
            pod
            for pod in self.pods
            if not is_gated(pod) and pod.metadata.annotations.get(GANG_UID) != uid
        )

    @cached_property
    def gone(self) -> frozenset[str]:
        """The uids of pods that it asked for and that are no more, or over."""
        return self.submission.pods - uids_of(p for p in self.named if not is_over(p))

    @cached_property
    def alive(self) -> tuple[Pod, ...]:
        """Pods that run by this submission, or will without another step of ours."""
        mine = {pod.metadata.uid: pod for pod in (*self.runs, *self.displaced)}
        mine |= {pod.metadata.uid: pod for pod in self.left}
        return tuple(pod for pod in mine.values() if not is_over(pod))
