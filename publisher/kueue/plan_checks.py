"""What comes next for a Workload of Kueue that waits for our AdmissionCheck.

Once Kueue has reserved quota, a Gang object asks for the devices of all pods that the
Workload will have, and holds them (`hold`). When they are decided the check is Ready,
and labels the pods for that gang; a gang that can never be is Rejected; one that does
not fit for too long gives its quota back (Retry). Without quota there is no Gang. Pure.
Field names are those of kueue.x-k8s.io/v1beta2 (Kueue v0.19).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.gang import Gang, GangPhase, GangSpec, Member, MemberClaim
from contracts.meta import ObjectMeta, OwnerReference
from contracts.names import GANG, MEMBER
from contracts.pods.declared_rules import (
    DeclaredRules,
    InvalidRules,
    read_declared_rules,
)
from contracts.pods.members import read_member_pod
from contracts.shapes import read
from contracts.structs import KubernetesExcerpt
from contracts.workload import Pod, PodTemplate
from publisher.gang_names import shorten_gang_name
from publisher.times import seconds_between

CONTROLLER = "moorings.dev/publisher"
"""`spec.controllerName` of the AdmissionChecks that are ours."""
PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
_DECIDED = (GangPhase.DECIDED, GangPhase.ALLOCATED, GangPhase.RUNNING)
_OVER = (GangPhase.REJECTED, GangPhase.CANCELLED)
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


class KueuePodSetAssignment(KubernetesExcerpt, frozen=True, kw_only=True):
    """What Kueue gave quota to."""

    name: str = ""
    count: int | None = None
    """Number of pods: fewer than the pod set has if it is admitted in part."""


class _Admission(KubernetesExcerpt, frozen=True, kw_only=True):
    pod_set_assignments: tuple[KueuePodSetAssignment, ...] = ()


class _WorkloadSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    pod_sets: tuple[KueuePodSet, ...] = ()
    active: bool = True
    priority: int | None = None


class _WorkloadStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    conditions: tuple[KueueCondition, ...] = ()
    admission_checks: tuple[KueueCheckState, ...] = ()
    admission: _Admission = _Admission()


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


class _AdmissionCheckSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    controller_name: str = ""


class _AdmissionCheckStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    conditions: tuple[KueueCondition, ...] = ()


class KueueAdmissionCheck(KubernetesExcerpt, frozen=True, kw_only=True):
    """An AdmissionCheck, as far as its controller must know it."""

    spec: _AdmissionCheckSpec = _AdmissionCheckSpec()
    status: _AdmissionCheckStatus = _AdmissionCheckStatus()

    @property
    def is_ours(self) -> bool:
        """True if we answer for it."""
        return self.spec.controller_name == CONTROLLER

    @property
    def is_active(self) -> bool:
        """True if Kueue has been told that somebody answers."""
        conditions = self.status.conditions
        return any(c.type == "Active" and c.status == "True" for c in conditions)


class CheckPlan(Struct, frozen=True, kw_only=True):
    """What is to be written now: at most one of these."""

    waits: bool = False
    """True if there may be more to do though the Workload stays as it is."""

    create: Gang | None = None
    """The Gang object that asks for the devices."""
    delete: bool = False
    """True if the Gang object goes."""
    states: tuple[Json, ...] = ()
    """What `status.admissionChecks` is to be."""

    @property
    def is_nothing(self) -> bool:
        """True if nothing comes next until the Workload changes."""
        return self == CheckPlan()


def read_kueue_workload(raw: Mapping[str, Any]) -> KueueWorkload:
    """Read a Workload.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    metadata = raw.get("metadata") or {}
    what = f"Workload {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return read(raw, KueueWorkload, what, [])


def read_admission_check(raw: Mapping[str, Any], name: str) -> KueueAdmissionCheck:
    """Read an AdmissionCheck.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    return read(raw, KueueAdmissionCheck, f"AdmissionCheck {name}", [])


def plan_check(
    raw: Mapping[str, Any],
    gang: Gang | None,
    status: Mapping[str, Any],
    *,
    checks: Container[str],
    now: str,
    patience_s: float,
) -> CheckPlan:
    """Plan what comes next for a Workload.

    `gang` is the Gang object of its name (`shorten_gang_name`), `status` its status;
    `checks` names the AdmissionChecks that are ours, `now` is RFC 3339.

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
    rules = _read_rules(workload)
    if isinstance(rules, InvalidRules):
        return _make_state(raw, mine, REJECTED, rules.message, now)
    asked = make_gang(workload, rules)
    if own is not None and _count_pods(own) != _count_pods(asked):
        # Kueue has given quota to more or fewer pods since.
        return CheckPlan(delete=True)
    if not asked.spec.members:
        return _make_state(raw, mine, READY, "it has no pods", now)
    if gang is None:
        return CheckPlan(create=asked, waits=True)
    if own is None:
        message = (
            f"there is already a Gang {gang.metadata.name} that does not belong to it"
        )
        return _make_state(raw, mine, RETRY, message, now)
    phase, message = str(status.get("phase", "")), str(status.get("message", ""))
    if phase in _OVER:
        return _make_state(raw, mine, REJECTED, message, now)
    if phase in _DECIDED:
        labels = tuple(_label_pods(workload))
        return _make_state(raw, mine, READY, "its devices are held", now, labels=labels)
    waited_s = seconds_between(quota.last_transition_time, now)
    state = RETRY if waited_s > patience_s else PENDING
    return _make_state(raw, mine, state, message or "its devices are requested", now)


def plan_refusal(
    raw: Mapping[str, Any],
    *,
    checks: Container[str],
    message: str,
    is_final: bool,
    now: str,
) -> CheckPlan:
    """Plan to tell in the check that the API server refused what was planned.

    `is_final`: the same will be refused for ever. Otherwise (such as a quota of Gang
    objects) Kueue asks again in its time. `checks` and `now` are those of `plan_check`.

    Raises:
        DecodeError: a value of the Workload is not of the type that its field has.
    """
    states = read_kueue_workload(raw).status.admission_checks
    mine = [check for check in states if check.name in checks]
    return _make_state(raw, mine, REJECTED if is_final else RETRY, message, now)


def make_gang(workload: KueueWorkload, rules: DeclaredRules) -> Gang:
    """Make the Gang object that holds the devices of the pods that quota is for.

    `rules`: what these pods say that they ask together.
    """
    meta = workload.metadata
    owner = OwnerReference(
        api_version=workload.api_version, kind="Workload", name=meta.name, uid=meta.uid
    )
    return Gang(
        metadata=ObjectMeta(
            name=shorten_gang_name(meta.name),
            namespace=meta.namespace,
            owner_references=(owner,),
        ),
        spec=GangSpec(
            priority=workload.spec.priority or 0,
            members=tuple(_make_members(workload)),
            constraints=rules.constraints,
            topology=rules.topology,
            hold=True,
        ),
    )


def _list_pod_sets(workload: KueueWorkload) -> Iterator[tuple[KueuePodSet, int]]:
    """Go through the pod sets that have quota, each with its number of pods."""
    assignments = workload.status.admission.pod_set_assignments
    reduced = {one.name: one.count for one in assignments if one.count is not None}
    for pod_set in workload.spec.pod_sets:
        count = reduced.get(pod_set.name, pod_set.count)
        if count:
            yield pod_set, count


def _read_rules(workload: KueueWorkload) -> DeclaredRules | InvalidRules:
    """Read the rules that the pods will declare, from their templates."""
    pods = [
        Pod(metadata=replace(pod_set.template.metadata, name=pod_set.name))
        for pod_set, _ in _list_pod_sets(workload)
    ]
    return read_declared_rules(pods) if pods else DeclaredRules()


def _make_members(workload: KueueWorkload) -> Iterator[Member]:
    for pod_set, count in _list_pod_sets(workload):
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
        yield Member(name=pod_set.name, count=count, claims=claims, node=pod.node)


def _count_pods(gang: Gang) -> dict[str, int]:
    return {member.name: member.count for member in gang.spec.members}


def _is_of(gang: Gang, workload: KueueWorkload) -> bool:
    owners = gang.metadata.owner_references
    return any(owner.uid == workload.metadata.uid for owner in owners)


def _make_state(  # all of one kind of answer
    raw: Mapping[str, Any],
    mine: list[KueueCheckState],
    state: str,
    message: str,
    now: str,
    *,
    labels: tuple[Json, ...] = (),
) -> CheckPlan:
    """Make the state of a check and the labels of the pods, unless they are set."""
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
    gang = shorten_gang_name(workload.metadata.name)
    for pod_set in workload.spec.pod_sets:
        yield {"name": pod_set.name, "labels": {GANG: gang, MEMBER: pod_set.name}}


def to_gang_body(gang: Gang) -> Json:
    """Return a Gang object as it is sent."""
    body: Json = to_builtins(gang)
    return body | {"apiVersion": gang.api_version, "kind": gang.kind}
