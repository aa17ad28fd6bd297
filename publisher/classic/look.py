"""What is looked at of a gang, or a claim, before its next steps are planned. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from msgspec import Struct

from contracts.ids import ClusterName, GangUID
from contracts.messages import PodRef
from contracts.pods.membership import Membership
from contracts.workload import Pod
from publisher.classic.known import ClassicView
from publisher.classic.objects import ClassicClaim, SchedulingContext
from publisher.gang_names import gang_uid
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, group_of_claim, is_done


class ClassicPod(Struct, frozen=True, kw_only=True):
    """A pod, the claims that it waits for and what kube-scheduler asks about it."""

    pod: Pod
    membership: Membership
    claims: dict[str, ClassicClaim]
    """Its claims by the pod's own names for them, ours that are pending alone."""
    faults: tuple[str, ...] = ()
    """What keeps its claims from being allocated."""
    context: SchedulingContext | None = None
    ruled_out: frozenset[str] = frozenset()
    """Nodes that were left to it, and that kube-scheduler did not select."""

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def ref(self) -> PodRef:
        """The pod's name and uid."""
        return PodRef(name=self.pod.metadata.name, uid=self.uid)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes on which its devices may be; sorted.

        Those which kube-scheduler asks about, and those which were found unsuitable:
        it leaves them out, but one of them may do by now.
        """
        if self.pod.spec.node_name:
            return (self.pod.spec.node_name,)
        if self.context is None:
            return ()
        said = {
            node for name in self.claims for node in self.context.unsuitable(name) or ()
        }
        return tuple(sorted({*self.context.asked, *said} - self.ruled_out))


class Look(Struct, frozen=True, kw_only=True):
    """What the next steps of one gang are planned from."""

    cluster: ClusterName
    group: GroupKey
    now: str
    alive: tuple[Pod, ...]
    """All pods of the gang that have not ended."""
    waiting: tuple[ClassicPod, ...]
    """Those of them with claims that we are to allocate."""
    lacking: tuple[str, ...] = ()
    """Names of pods some of whose claims are not there yet."""
    claim: ClassicClaim | None = None
    """The claim that is allocated without a pod, where that is what the gang is."""
    records: tuple[PodGangRecord, ...] = ()
    answered: Mapping[str, tuple[str, ...]] = {}
    """By uid of a pod: which nodes were asked about when a node was left to it."""
    overdue: Container[str] = frozenset()
    """Uids of pods to which a node was left so long ago that it should be selected."""
    forgotten: Callable[[GangUID], bool | None] = lambda _: None
    """Tells whether a gang is over and forgotten."""

    def next_uid(self, uids: Sequence[str]) -> tuple[int, GangUID]:
        """Return generation and uid of the next gang of these pods."""
        generation = 1 + max((record.age[0] for record in self.records), default=0)
        name = str(self.group)
        while self.forgotten(gang_uid(name, generation, uids)) is not None:
            generation += 1
        return generation, gang_uid(name, generation, uids)


def read_waiting(
    view: ClassicView, pod: Pod, ruled_out: Mapping[str, frozenset[str]]
) -> ClassicPod | None:
    """Return what a pod waits for; None: for no claim of ours."""
    found = view.claims_of(pod)
    pending = {name: claim for name, claim in found.items() if claim.is_pending}
    if not pending:
        return None
    faults = (f"{c.name}: {c.fault}" for c in pending.values() if c.spec is None)
    return ClassicPod(
        pod=pod,
        membership=view.membership(pod),
        claims=pending,
        faults=tuple(faults),
        context=view.context(pod),
        ruled_out=ruled_out.get(pod.metadata.uid, frozenset()),
    )


def look_at(
    view: ClassicView,
    group: GroupKey,
    records: tuple[PodGangRecord, ...],
    *,
    cluster: ClusterName,
    now: str,
    answered: Mapping[str, tuple[str, ...]] = {},
    overdue: Container[str] = frozenset(),
    ruled_out: Mapping[str, frozenset[str]] = {},
    forgotten: Callable[[GangUID], bool | None] = lambda _: None,
) -> Look:
    """Look at the pods of a gang, or at the claim that a group is.

    `ruled_out` are nodes by uid of the pod; all others are those of `Look`.
    """
    alive = tuple(pod for pod in view.pods(group) if not is_done(pod))
    waiting = (read_waiting(view, pod, ruled_out) for pod in alive)
    claim = claim_of(view, group)
    return Look(
        cluster=cluster,
        group=group,
        now=now,
        alive=alive,
        waiting=tuple(each for each in waiting if each is not None),
        lacking=tuple(pod.metadata.name for pod in alive if view.lacks_claims(pod)),
        claim=claim if claim is not None and claim.is_immediate else None,
        records=records,
        answered=answered,
        overdue=overdue,
        forgotten=forgotten,
    )


def claim_of(view: ClassicView, group: GroupKey) -> ClassicClaim | None:
    """Return the claim that a group is; None: it is pods, or the claim is gone."""
    key = f"{group.namespace}/{group.name}"
    return view.claim(key) if group == group_of_claim(key) else None
