"""A look at a group of pods, and the next steps that are planned from it.

Every plan takes the one and returns the other. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from msgspec import Struct

from contracts.allocation import Reason
from contracts.avoidance import GRACE_S, NodesAvoided
from contracts.gang import Gang
from contracts.ids import ClusterName, GangUID
from contracts.messages import (
    CancelGang,
    CommandMessage,
    ConfirmationMessage,
    ExpectedStart,
    GangAllocated,
    NodesLacking,
    Preemption,
    SubmitGang,
)
from contracts.names import GANG_UID
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import Membership
from contracts.workload import Pod
from publisher.gangs.claims import Owns
from publisher.gangs.patches import Patch
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import (
    GroupKey,
    View,
    claim_keys,
    is_gated,
    is_over,
    uids_of,
)
from publisher.gangs.void_marks import is_void

PublisherMessage = SubmitGang | CommandMessage | ConfirmationMessage | NodesAvoided
"""What a publisher says of gangs."""


class StatusReport(Struct, frozen=True, kw_only=True):
    """What the author of some pods should know now."""

    phase: str
    reason: str = ""
    """One word; empty: all is well."""
    message: str = ""
    pods: tuple[Pod, ...] = ()
    """Those that wait because of this."""
    cause: Reason | None = None
    """What this version of the solver would refuse."""
    decision: GangAllocated | None = None
    expected: ExpectedStart | None = None
    """When it starts at the latest; None: nothing is kept for it."""
    lacks: tuple[NodesLacking, ...] = ()
    """Nodes that would let it in."""
    recreations: int = 0
    """How often the gang was made anew for what may happen again."""


class EndForAnother(Struct, frozen=True, kw_only=True):
    """The end of a gang that must go for another."""

    said: Preemption
    message: CancelGang
    report: StatusReport


class NextSteps(Struct, frozen=True, kw_only=True):
    """What may be done now for a group: writes first, then messages; then plan anew."""

    patches: tuple[Patch, ...] = ()
    removals: tuple[Pod, ...] = ()
    """Pods to delete, so that whoever made them makes new ones."""
    evictions: tuple[Pod, ...] = ()
    """Pods to evict: their gang gives its place up."""
    preemptions: tuple[EndForAnother, ...] = ()
    """Ends of gangs, each said once all may go that must go for the other one."""
    messages: tuple[PublisherMessage, ...] = ()
    reports: tuple[StatusReport, ...] = ()
    kept: frozenset[str] = frozenset()
    """Uids of pods that stay with their gangs; others may be asked for anew."""
    leaving: frozenset[str] = frozenset()
    """Uids of pods that will be deleted, so that others are made."""
    given_up: frozenset[GangUID] = frozenset()
    """Gangs that are being taken back for good: their pods wait for nothing yet."""
    forget: tuple[GangUID, ...] = ()
    """Gangs of which nothing is left."""
    doubted: tuple[Pod, ...] = ()
    """Pods without devices, which may have ended: what claims say comes first."""
    recreations: int = 0
    """1: a gang is made anew for what may happen again, a refusal or a failure."""
    look_again_s: float | None = None
    """Plan anew in so many seconds, whatever happens; None: only if something does."""

    def __add__(self, other: NextSteps) -> NextSteps:
        return add_up((self, other))


def add_up(steps: Iterable[NextSteps]) -> NextSteps:
    """Return the steps of all of them, in this order."""
    all_steps = tuple(steps)
    pauses_s = (each.look_again_s for each in all_steps)
    return NextSteps(
        patches=tuple(patch for each in all_steps for patch in each.patches),
        removals=tuple(pod for each in all_steps for pod in each.removals),
        evictions=tuple(pod for each in all_steps for pod in each.evictions),
        preemptions=tuple(end for each in all_steps for end in each.preemptions),
        messages=tuple(message for each in all_steps for message in each.messages),
        reports=tuple(report for each in all_steps for report in each.reports),
        kept=frozenset().union(*(each.kept for each in all_steps)),
        leaving=frozenset().union(*(each.leaving for each in all_steps)),
        given_up=frozenset().union(*(each.given_up for each in all_steps)),
        forget=tuple(uid for each in all_steps for uid in each.forget),
        doubted=tuple(pod for each in all_steps for pod in each.doubted),
        recreations=max((each.recreations for each in all_steps), default=0),
        look_again_s=min((s for s in pauses_s if s is not None), default=None),
    )


class PlanContext(Struct, frozen=True, kw_only=True, dict=True):
    """One look at a group of pods: what is known of it, and our configuration.

    The View is asked once about the group, so every look needs a context of its own.
    """

    cluster: ClusterName
    group: GroupKey
    view: View
    records: tuple[PodGangRecord, ...]
    """What was submitted for the group."""
    owns: Owns
    now: str
    """RFC 3339, whole seconds, UTC."""
    refused: Callable[[GangUID, int], str] = lambda _uid, _attempt: ""
    """Why the API server refused to take an attempt; empty: it did not."""
    forgotten: Callable[[GangUID], bool | None] = lambda _uid: None
    """Of a gang that is over and forgotten, whether its pods are asked for again."""
    refused_since: Callable[[str], str] = lambda _uid: ""
    """Since when kube-scheduler is seen to refuse a pod, by uid; RFC 3339."""
    grace_s: float = GRACE_S
    """So long a refusal may pass by itself."""
    allocates_bound: bool = False
    """True if pods that were bound without us get devices of their nodes."""
    avoided: Callable[[str], NodesAvoided | None] = lambda _name: None
    """Which nodes a gang was said to avoid, by the name of its `NodesAvoided`."""

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """The pods of the group, in the order of the numbers in their names."""
        return self.view.pods(self.group)

    @cached_property
    def waiting(self) -> tuple[Pod, ...]:
        """The pods behind our gate that are not over."""
        return tuple(pod for pod in self.pods if is_gated(pod) and not is_over(pod))

    @cached_property
    def running(self) -> tuple[Pod, ...]:
        """The pods with open gates that are not over."""
        return tuple(p for p in self.pods if not is_gated(p) and not is_over(p))

    @cached_property
    def gang(self) -> Gang | None:
        """The Gang object of the group."""
        return self.view.gang(self.group)

    @cached_property
    def _memberships(self) -> dict[str, Membership]:
        return {pod.metadata.uid: self.view.membership(pod) for pod in self.pods}

    def membership(self, pod: Pod) -> Membership:
        """Return which gang a pod belongs to, and as what."""
        found = self._memberships.get(pod.metadata.uid)
        return self.view.membership(pod) if found is None else found

    def list_running_with(self, pod: Pod) -> tuple[Pod, ...]:
        """Return the pods with open gates of the run that a pod is of."""
        run = self.membership(pod).run
        return tuple(each for each in self.running if self.membership(each).run == run)

    def owner_of(self, pod: Pod) -> GangOwner | None:
        """Return the object that says how many pods the gang of a pod has."""
        return self.view.owners.owner_of(self.membership(pod))

    def list_unallocated(self, pod: Pod) -> Iterator[str]:
        """Go through the claims of ours of a pod that hold nothing, by key."""
        for key in claim_keys(pod).values():
            claim = self.view.claim(key)
            if claim is not None and claim.allocation is None and self.owns(claim):
                yield key

    def address(self, record: PodGangRecord) -> dict[str, Any]:
        """Return the fields by which messages name a gang."""
        return {
            "cluster": self.cluster,
            "namespace": self.group.namespace,
            "uid": record.uid,
        }


class SubmittedGang(Struct, frozen=True, kw_only=True, dict=True):
    """A gang that was submitted, and the pods that it answers for, as they are now.

    A pod belongs to the newest gang that asks for it, and runs for the one that opened
    its gate.
    """

    record: PodGangRecord
    pods: tuple[Pod, ...]
    """Those that are still there and belong to it."""
    opened: tuple[Pod, ...]
    """Those whose gates were opened for it, whoever asks for them now."""
    requested: tuple[Pod, ...]
    """Those that are still there of all that it asked for."""
    is_reserved: bool = False
    """It was submitted before its pods, so it is not ours to give up."""

    @cached_property
    def waiting(self) -> tuple[Pod, ...]:
        """Pods behind our gate."""
        return tuple(pod for pod in self.pods if is_gated(pod) and not is_over(pod))

    @cached_property
    def entitled(self) -> tuple[Pod, ...]:
        """Waiting pods that were not withdrawn for good."""
        uid = self.record.uid
        return tuple(pod for pod in self.waiting if not is_void(pod, uid))

    @cached_property
    def displaced(self) -> tuple[Pod, ...]:
        """Pods that another gang let through the gate before."""
        uid = self.record.uid
        return tuple(
            pod
            for pod in self.pods
            if not is_gated(pod) and pod.metadata.annotations.get(GANG_UID) != uid
        )

    @cached_property
    def gone_uids(self) -> frozenset[str]:
        """The uids of pods that it asked for and that are gone or over."""
        there = uids_of(pod for pod in self.requested if not is_over(pod))
        return self.record.pods - there

    @cached_property
    def alive(self) -> tuple[Pod, ...]:
        """Pods that run for this gang, or will without another step of ours."""
        pods = {pod.metadata.uid: pod for pod in (*self.opened, *self.displaced)}
        pods |= {pod.metadata.uid: pod for pod in self.entitled}
        return tuple(pod for pod in pods.values() if not is_over(pod))
