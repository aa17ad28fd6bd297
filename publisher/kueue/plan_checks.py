"""What comes next for a Workload of Kueue that waits for our AdmissionCheck.

Once Kueue has reserved quota, a Gang object asks for the devices of all pods that the
Workload will have, and holds them (`hold`). When they are decided the check is Ready,
and labels the pods for that gang; a gang that can never be is Rejected; one that does
not fit for too long gives its quota back (Retry). Without quota there is no Gang. Pure.
Field names are those of kueue.x-k8s.io/v1beta2 (Kueue v0.19).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct

from contracts.codec import to_builtins
from contracts.gang import Gang, GangPhase, GangSpec, Member, MemberClaim
from contracts.meta import ObjectMeta, OwnerReference
from contracts.names import GANG, MEMBER
from contracts.pods.members import read_member_pod
from contracts.shapes import read
from contracts.structs import KubernetesExcerpt
from contracts.workload import PodTemplate

CONTROLLER = "moorings.dev/publisher"
"""`spec.controllerName` of the AdmissionChecks that are ours."""
PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
_DECIDED = (GangPhase.DECIDED, GangPhase.WRITTEN, GangPhase.RUNNING)
_OVER = (GangPhase.REJECTED, GangPhase.CANCELLED)
_LABEL, _DIGEST = 63, 10
_MESSAGE = 1000
Json = dict[str, Any]


class KueueCondition(KubernetesExcerpt, frozen=True, kw_only=True):
    """One observation of a Workload, such as `QuotaReserved`."""

    type: str = ""
    status: str = ""
    last_transition_time: str = ""


class KueuePodSet(KubernetesExcerpt, frozen=True, kw_only=True):
    """Equal pods that a Workload will have."""

    name: str = "main"
    count: int = 1
    template: PodTemplate = PodTemplate()


class KueueCheckState(KubernetesExcerpt, frozen=True, kw_only=True):
    """What an AdmissionCheck says of a Workload."""

    name: str = ""
    state: str = ""
    message: str = ""


class _WorkloadSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    pod_sets: tuple[KueuePodSet, ...] = ()
    active: bool = True
    priority: int | None = None


class _WorkloadStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    conditions: tuple[KueueCondition, ...] = ()
    admission_checks: tuple[KueueCheckState, ...] = ()


class KueueWorkload(KubernetesExcerpt, frozen=True, kw_only=True):
    """A Workload, as far as the check must know it."""

    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()

    def condition(self, kind: str) -> KueueCondition | None:
        """Return a condition that holds; None: it does not."""
        conditions = self.status.conditions
        return next(
            (c for c in conditions if c.type == kind and c.status == "True"), None
        )


class CheckPlan(Struct, frozen=True, kw_only=True):
    """What is to be written now: at most one of these."""

    waits: bool = False
    """Whether there may be more to do though the Workload stays as it is."""

    create: Gang | None = None
    """The Gang object that asks for the devices."""
    delete: bool = False
    """Whether the Gang object goes."""
    states: tuple[Json, ...] = ()
    """What `status.admissionChecks` is to be."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing comes next until the Workload changes."""
        return self == CheckPlan()


def read_kueue_workload(raw: Mapping[str, Any]) -> KueueWorkload:
    """Read a Workload.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    metadata = raw.get("metadata") or {}
    what = f"Workload {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return read(raw, KueueWorkload, what, [])


def plan_check(
    raw: Mapping[str, Any],
    gang: Gang | None,
    status: Mapping[str, Any],
    *,
    checks: Container[str],
    now: str,
    patience_s: float,
) -> CheckPlan:
    """Say what comes next for a Workload.

    `gang` is the Gang object of `name_gang`, `status` its status; `checks` names the
    AdmissionChecks that are ours, `now` is RFC 3339.

    Raises:
        DecodeError: a value of the Workload is not of the type that its field has.
    """
    workload = read_kueue_workload(raw)
    mine = [c for c in workload.status.admission_checks if c.name in checks]
    own = None if gang is None or not _is_of(gang, workload) else gang
    quota = workload.condition("QuotaReserved")
    is_over = workload.condition("Finished") is not None or not workload.spec.active
    if not mine or quota is None or is_over:
        return CheckPlan(delete=own is not None)
    states = {check.state for check in mine}
    if states <= {RETRY, REJECTED}:
        # Kueue takes the quota back, and asks again in its time.
        return CheckPlan(delete=own is not None)
    if states == {READY}:
        return CheckPlan()
    if gang is None:
        return CheckPlan(create=make_gang(workload), waits=True)
    if own is None:
        message = f"there is a Gang {gang.metadata.name} already that is not of it"
        return _say(raw, mine, RETRY, message, now)
    phase, message = str(status.get("phase", "")), str(status.get("message", ""))
    if phase in _OVER:
        return _say(raw, mine, REJECTED, message, now)
    if phase in _DECIDED:
        labels = tuple(_label_pods(workload))
        return _say(raw, mine, READY, "its devices are held", now, labels=labels)
    waited_s = _seconds(quota.last_transition_time, now)
    state = RETRY if waited_s > patience_s else PENDING
    return _say(raw, mine, state, message or "its devices are asked for", now)


def name_gang(workload: ObjectMeta) -> str:
    """Name the Gang object of a Workload: so that it is a label, too."""
    name = workload.name
    if len(name) <= _LABEL:
        return name
    digest = uuid5(NAMESPACE_URL, name).hex[:_DIGEST]
    return f"{name[: _LABEL - _DIGEST - 1].rstrip('-.')}-{digest}"


def make_gang(workload: KueueWorkload) -> Gang:
    """Make the Gang object that holds the devices of a Workload's pods."""
    meta = workload.metadata
    owner = OwnerReference(
        api_version=workload.api_version, kind="Workload", name=meta.name, uid=meta.uid
    )
    return Gang(
        metadata=ObjectMeta(
            name=name_gang(meta), namespace=meta.namespace, owner_references=(owner,)
        ),
        spec=GangSpec(
            priority=workload.spec.priority or 0,
            members=tuple(_make_members(workload)),
            hold=True,
        ),
    )


def _make_members(workload: KueueWorkload) -> Iterator[Member]:
    for pod_set in workload.spec.pod_sets:
        spec = pod_set.template.spec
        claims = tuple(
            MemberClaim(
                name=claim.name,
                template_name=claim.resource_claim_template_name,
                claim_name=claim.resource_claim_name,
            )
            for claim in spec.resource_claims
        )
        pod = read_member_pod(pod_set.template.metadata, spec, claims)
        yield Member(
            name=pod_set.name, count=pod_set.count, claims=claims, node=pod.node
        )


def _is_of(gang: Gang, workload: KueueWorkload) -> bool:
    owners = gang.metadata.owner_references
    return any(owner.uid == workload.metadata.uid for owner in owners)


def _say(  # all of one kind of answer
    raw: Mapping[str, Any],
    mine: list[KueueCheckState],
    state: str,
    message: str,
    now: str,
    *,
    labels: tuple[Json, ...] = (),
) -> CheckPlan:
    """Say a state, unless it is said, and how to label the pods."""
    message = message[:_MESSAGE]
    waits = state == PENDING
    if all((check.state, check.message) == (state, message) for check in mine):
        return CheckPlan(waits=waits)
    names = {check.name for check in mine}
    states = []
    for written in (raw.get("status") or {}).get("admissionChecks") or ():
        if written.get("name") in names:
            since = written.get("lastTransitionTime") or now
            changed = written.get("state") != state
            written = {  # noqa: PLW2901 # the entry as it is to be
                "name": written["name"],
                "state": state,
                "message": message,
                "lastTransitionTime": now if changed else since,
                **({"podSetUpdates": list(labels)} if labels else {}),
            }
        states.append(written)
    return CheckPlan(states=tuple(states), waits=waits)


def _label_pods(workload: KueueWorkload) -> Iterator[Json]:
    gang = name_gang(workload.metadata)
    for pod_set in workload.spec.pod_sets:
        yield {"name": pod_set.name, "labels": {GANG: gang, MEMBER: pod_set.name}}


def _seconds(since: str, now: str) -> float:
    """Return the seconds between two times; 0 where one is none."""
    try:
        return (
            datetime.fromisoformat(now) - datetime.fromisoformat(since)
        ).total_seconds()
    except ValueError:
        return 0.0


def to_gang_body(gang: Gang) -> Json:
    """Return a Gang object as it is sent."""
    body: Json = to_builtins(gang)
    return body | {"apiVersion": gang.api_version, "kind": gang.kind}
