"""What comes next for a Workload of Kueue that waits for our AdmissionCheck.

Once Kueue has reserved quota, a Gang object asks for the devices of all pods that the
Workload will have, on nodes of the flavors and topology domains that Kueue assigned,
and holds them (`hold`). When they are decided the check is Ready, and labels the pods
for that gang; a gang that can never be is Rejected; one that does not fit for too long
gives its quota back (Retry), and asks again after a delay that grows. Without quota
there is no Gang, but for a Workload at our gate (`ADMISSION_GATE`): it comes into
Kueue's queue once a Gang shows that its devices can be had. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.gang import Gang, GangPhase, GangSpec, Member
from contracts.meta import ObjectMeta, OwnerReference
from contracts.names import GANG, MEMBER
from contracts.pods.declared_rules import (
    DeclaredRules,
    InvalidRules,
    read_declared_rules,
)
from contracts.workload import Pod
from publisher.gang_names import shorten_gang_name
from publisher.kueue.members import (
    find_unassigned,
    list_pod_sets,
    make_members,
    spread_rules,
)
from publisher.kueue.objects import (
    ADMISSION_GATE,
    KueueCheckState,
    KueueFlavor,
    KueueWorkload,
    read_kueue_workload,
)
from publisher.times import seconds_between

PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
_DECIDED = (GangPhase.DECIDED, GangPhase.ALLOCATED, GangPhase.RUNNING)
_OVER = (GangPhase.REJECTED, GangPhase.CANCELLED)
_MESSAGE = 1000
RETRY_S = 60.0
"""Kueue's own first delay (UpdateAdmissionCheckRequeueState)."""
MOST_RETRY_S = 3600.0
_MOST_DOUBLINGS = 32
_QUIET_S = 30.0
"""So long nothing is said of devices that are asked for: most are decided by then, and
each write has Kueue validate the Workload and look at it again."""
Json = dict[str, Any]


class CheckPlan(Struct, frozen=True, kw_only=True):
    """What is to be written now: at most one of these."""

    waits: bool = False
    """True if there may be more to do though the Workload stays as it is."""

    create: Gang | None = None
    """The Gang object that asks for the devices."""
    delete: bool = False
    """True if the Gang object goes."""
    open_gate: bool = False
    """True if our gate goes: the Workload may come into Kueue's queue."""
    states: tuple[Json, ...] = ()
    """What `status.admissionChecks` is to be."""

    @property
    def is_nothing(self) -> bool:
        """True if nothing comes next until the Workload changes."""
        return self == CheckPlan()


def plan_check(
    raw: Mapping[str, Any],
    gang: Gang | None,
    status: Mapping[str, Any],
    *,
    checks: Container[str],
    now: str,
    patience_s: float,
    flavors: Mapping[str, KueueFlavor] = {},
    multikueue: Container[str] = (),
    retry_s: float = RETRY_S,
) -> CheckPlan:
    """Plan what comes next for a Workload.

    `gang` is the Gang object of its name (`shorten_gang_name`), `status` its status;
    `checks` names the AdmissionChecks that are ours, `multikueue` those that send it to
    another cluster; `now` is RFC 3339, `retry_s` the first delay after a Retry.

    Raises:
        DecodeError: a value of the Workload is not of the type that its field has.
    """
    workload = read_kueue_workload(raw)
    asked = workload.status.admission_checks
    mine = [check for check in asked if check.name in checks]
    own = None if gang is None or not _is_of(gang, workload) else gang
    quota = workload.condition("QuotaReserved")
    is_over = workload.condition("Finished") is not None or not workload.spec.active
    if ADMISSION_GATE in workload.gates and quota is None and not is_over:
        return _plan_gated(workload, gang, own, status)
    if not mine or quota is None or is_over:
        return CheckPlan(delete=own is not None)
    states = {check.state for check in mine}
    is_evicted = workload.condition("Evicted") is not None
    if is_evicted or states <= {RETRY, REJECTED}:
        # Kueue takes the quota back, and asks again in its time.
        return CheckPlan(delete=own is not None)
    if states == {READY}:
        return CheckPlan()
    told = _Telling(raw=raw, mine=mine, now=now, retry_s=retry_s)
    if any(check.name in multikueue for check in asked):
        if own is not None:
            return CheckPlan(delete=True)
        return told.say(PENDING, _ELSEWHERE)
    waited_s = seconds_between(quota.last_transition_time, now)
    undecided = RETRY if waited_s > patience_s else PENDING
    unassigned = find_unassigned(workload, flavors)
    if unassigned:
        return told.say(undecided, unassigned)
    wanted = make_gang(workload, flavors)
    if isinstance(wanted, InvalidRules):
        return told.say(REJECTED, wanted.message)
    if own is not None and _list_places(own) != _list_places(wanted):
        # Kueue has since given quota to more or fewer pods, or elsewhere.
        return CheckPlan(delete=True)
    if not wanted.spec.members:
        return told.say(READY, "it has no pods")
    if gang is None:
        return CheckPlan(create=wanted, waits=True)
    if own is None:
        return told.say(RETRY, _describe_namesake(gang))
    phase, message = str(status.get("phase", "")), str(status.get("message", ""))
    if phase in _OVER:
        return told.say(REJECTED, message)
    if phase in _DECIDED:
        labels = tuple(_label_pods(workload))
        return told.say(READY, "its devices are held", labels=labels)
    if not message and waited_s <= _QUIET_S:
        return CheckPlan(waits=True)
    return told.say(undecided, message or "its devices are requested")


_ELSEWHERE = (
    "MultiKueue runs it in another cluster: no device of this one is held; "
    "put the check on the queues of the worker clusters"
)


def _plan_gated(
    workload: KueueWorkload,
    gang: Gang | None,
    own: Gang | None,
    status: Mapping[str, Any],
) -> CheckPlan:
    """Plan to show by a Gang that the devices can be had, before there is quota.

    What can never be had passes the gate too, and is told so by the check.
    """
    wanted = make_gang(workload, {})
    phase = status.get("phase", "")
    if isinstance(wanted, InvalidRules) or not wanted.spec.members:
        return CheckPlan(open_gate=True)
    if own is not None and _list_places(own) != _list_places(wanted):
        return CheckPlan(delete=True)
    if own is not None and phase in (*_DECIDED, *_OVER):
        return CheckPlan(open_gate=True)
    return CheckPlan(create=wanted if gang is None else None, waits=True)


def plan_refusal(
    raw: Mapping[str, Any],
    *,
    checks: Container[str],
    message: str,
    is_final: bool,
    now: str,
    retry_s: float = RETRY_S,
) -> CheckPlan:
    """Plan to tell in the check that the API server refused what was planned.

    `is_final`: the same will be refused for ever. Otherwise (such as a quota of Gang
    objects) Kueue asks again in its time. The others are those of `plan_check`.

    Raises:
        DecodeError: a value of the Workload is not of the type that its field has.
    """
    states = read_kueue_workload(raw).status.admission_checks
    mine = [check for check in states if check.name in checks]
    told = _Telling(raw=raw, mine=mine, now=now, retry_s=retry_s)
    return told.say(REJECTED if is_final else RETRY, message)


def make_gang(
    workload: KueueWorkload, flavors: Mapping[str, KueueFlavor]
) -> Gang | InvalidRules:
    """Make the Gang object that holds the devices of the pods that quota is for.

    Raises:
        DecodeError: a topology assignment contradicts itself.
    """
    rules = _read_rules(workload)
    if isinstance(rules, InvalidRules):
        return rules
    meta = workload.metadata
    owner = OwnerReference(
        api_version=workload.api_version, kind="Workload", name=meta.name, uid=meta.uid
    )
    members = make_members(workload, flavors)
    rules = spread_rules(rules, members)
    return Gang(
        metadata=ObjectMeta(
            name=shorten_gang_name(meta.name),
            namespace=meta.namespace,
            owner_references=(owner,),
        ),
        spec=GangSpec(
            priority=workload.spec.priority or 0,
            members=tuple(part for parts in members.values() for part in parts),
            constraints=rules.constraints,
            topology=rules.topology,
            hold=True,
        ),
    )


def to_gang_body(gang: Gang) -> Json:
    """Return a Gang object as it is sent."""
    body: Json = to_builtins(gang)
    return body | {"apiVersion": gang.api_version, "kind": gang.kind}


def _read_rules(workload: KueueWorkload) -> DeclaredRules | InvalidRules:
    """Read the rules that the pods will declare, from their templates."""
    pods = [
        Pod(metadata=replace(pod_set.template.metadata, name=pod_set.name))
        for pod_set, _, _ in list_pod_sets(workload)
    ]
    return read_declared_rules(pods) if pods else DeclaredRules()


def _list_places(gang: Gang) -> dict[str, tuple[object, ...]]:
    """List how many pods of each member there are, and on what nodes."""
    return {member.name: _place_of(member) for member in gang.spec.members}


def _place_of(member: Member) -> tuple[object, ...]:
    return member.count, member.node.node_selector, member.node.tolerations


def _is_of(gang: Gang, workload: KueueWorkload) -> bool:
    owners = gang.metadata.owner_references
    return any(owner.uid == workload.metadata.uid for owner in owners)


def _describe_namesake(gang: Gang) -> str:
    name = gang.metadata.name
    return f"there is already a Gang {name} that does not belong to it"


def _label_pods(workload: KueueWorkload) -> Iterator[Json]:
    gang = shorten_gang_name(workload.metadata.name)
    for pod_set in workload.spec.pod_sets:
        yield {"name": pod_set.name, "labels": {GANG: gang, MEMBER: pod_set.name}}


class _Telling(Struct, frozen=True, kw_only=True):
    """What the state of a check is made from."""

    raw: Mapping[str, Any]
    mine: list[KueueCheckState]
    now: str
    retry_s: float

    def say(
        self, state: str, message: str, *, labels: tuple[Json, ...] = ()
    ) -> CheckPlan:
        """Plan the state of our checks and the labels of the pods, unless it is set.

        What Kueue keeps in an entry stays, such as `retryCount`.
        """
        message = message[:_MESSAGE]
        waits = state == PENDING
        if all((check.state, check.message) == (state, message) for check in self.mine):
            return CheckPlan(waits=waits)
        mine = {check.name: check for check in self.mine}
        states = []
        for entry in (self.raw.get("status") or {}).get("admissionChecks") or ():
            check = mine.get(entry.get("name"))
            if check is None:
                states.append(entry)
                continue
            changed = {"state": state, "message": message}
            since = entry.get("lastTransitionTime")
            if entry.get("state") != state or not since:
                changed["lastTransitionTime"] = self.now
            kept = {key: entry[key] for key in entry if key != "podSetUpdates"}
            states.append(
                kept
                | changed
                | ({"podSetUpdates": list(labels)} if labels else {})
                | (self._delay(check) if state == RETRY else {})
            )
        return CheckPlan(states=tuple(states), waits=waits)

    def _delay(self, check: KueueCheckState) -> Json:
        """Return how long Kueue waits: twice as long each time, as its own do."""
        doublings = min(check.retry_count or 0, _MOST_DOUBLINGS)
        delay_s = min(self.retry_s * 2**doublings, MOST_RETRY_S)
        return {"requeueAfterSeconds": int(delay_s)}
