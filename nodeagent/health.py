"""Decides from raw readings whether a device is healthy: hysteresis lives here.

One bad reading proves little and one good reading even less, so a verdict changes only
after several. A device that nobody hears of for a while becomes Unknown. Pure: moments
are arguments, and what is plainly healthy costs no memory. Knows nothing of how a
device is read or who is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, structs

from contracts.device import DeviceTaint
from contracts.ids import ClusterName, DeviceID, NodeName
from contracts.messages import DeviceHealth, HealthJudged

TAINT_KEY = "moorings.dev/unhealthy"


class Verdict(StrEnum):
    """What is believed of a device."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class Symptom(StrEnum):
    """What one look at a device says when it is not plainly good."""

    BAD = "Bad"
    SILENT = "Silent"


class TaintEffect(StrEnum):
    """What a taint does (KEP-5055)."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


class Reading(Struct, frozen=True):
    """One look at a device that is not plainly good."""

    device: DeviceID
    symptom: Symptom
    message: str = ""


class Moment(Struct, frozen=True):
    """Now, by two clocks."""

    monotonic_s: float
    """Never jumps; what durations are measured by."""
    utc: str
    """RFC 3339; what people and taints are told."""


class HealthPolicy(Struct, frozen=True, kw_only=True):
    """How much evidence changes a verdict, and what it does to the device."""

    bad_readings: int = 3
    """Bad readings in a row that make a device Unhealthy."""
    good_readings: int = 5
    """Good readings in a row that make it Healthy again, if they also..."""
    recovery_s: float = 10.0
    """...span this long."""
    unknown_after_s: float = 30.0
    """Silence after which a healthy device becomes Unknown."""
    unhealthy_effect: TaintEffect = TaintEffect.NO_EXECUTE
    unknown_effect: TaintEffect = TaintEffect.NO_SCHEDULE


class DeviceRecord(Struct, frozen=True, kw_only=True):
    """What is remembered of a device that is not plainly healthy."""

    verdict: Verdict = Verdict.HEALTHY
    since_utc: str = ""
    """When the verdict was given."""
    message: str = ""
    bad_readings: int = 0
    good_readings: int = 0
    good_since_s: float = 0.0
    silent_since_s: float | None = None
    looked_at_s: float | None = None


HealthState = Mapping[DeviceID, DeviceRecord]
"""Devices of one node that are not plainly healthy."""


class HealthChange(Struct, frozen=True, kw_only=True):
    """A device whose verdict is not what it was."""

    device: DeviceID
    before: Verdict
    after: Verdict
    message: str = ""


def judge(
    policy: HealthPolicy,
    previous: HealthState,
    readings: Iterable[Reading],
    now: Moment,
) -> tuple[HealthState, tuple[HealthChange, ...]]:
    """Take one look at a node's devices into account.

    A device without a reading was read and is good. Looks at one moment count once, so
    judging twice changes nothing. Cost: linear in the devices that are not healthy.
    """
    looks = {reading.device: reading for reading in readings}
    state: dict[DeviceID, DeviceRecord] = {}
    changes: list[HealthChange] = []
    for device in sorted(previous.keys() | looks.keys()):
        before = previous.get(device, DeviceRecord())
        after = _judge_device(policy, before, looks.get(device), now)
        if after is not None:
            state[device] = after
        verdict = Verdict.HEALTHY if after is None else after.verdict
        if verdict is not before.verdict:
            message = before.message if after is None else after.message
            changes.append(
                HealthChange(
                    device=device, before=before.verdict, after=verdict, message=message
                )
            )
    return state, tuple(changes)


def _judge_device(
    policy: HealthPolicy, record: DeviceRecord, look: Reading | None, now: Moment
) -> DeviceRecord | None:
    if record.looked_at_s == now.monotonic_s:
        return record
    seen = structs.replace(record, looked_at_s=now.monotonic_s)
    if look is None:
        return _after_good(policy, seen, now)
    if look.symptom is Symptom.BAD:
        return _after_bad(policy, seen, look, now)
    return _after_silence(policy, seen, look, now)


def _after_good(
    policy: HealthPolicy, record: DeviceRecord, now: Moment
) -> DeviceRecord | None:
    if record.verdict is Verdict.HEALTHY:
        return None
    count = record.good_readings + 1
    since_s = record.good_since_s if record.good_readings else now.monotonic_s
    long_enough = now.monotonic_s - since_s >= policy.recovery_s
    if count >= policy.good_readings and long_enough:
        return None
    return structs.replace(
        record,
        good_readings=count,
        good_since_s=since_s,
        bad_readings=0,
        silent_since_s=None,
    )


def _after_bad(
    policy: HealthPolicy, record: DeviceRecord, look: Reading, now: Moment
) -> DeviceRecord:
    counted = structs.replace(
        record,
        bad_readings=record.bad_readings + 1,
        good_readings=0,
        silent_since_s=None,
    )
    if (
        record.verdict is Verdict.UNHEALTHY
        or counted.bad_readings < policy.bad_readings
    ):
        return counted
    return _with_verdict(counted, Verdict.UNHEALTHY, look.message, now)


def _after_silence(
    policy: HealthPolicy, record: DeviceRecord, look: Reading, now: Moment
) -> DeviceRecord:
    """Wait; silence neither ends a row of bad readings nor makes one."""
    since_s = now.monotonic_s
    if record.silent_since_s is not None:
        since_s = record.silent_since_s
    silent = structs.replace(record, good_readings=0, silent_since_s=since_s)
    too_long = now.monotonic_s - since_s >= policy.unknown_after_s
    if record.verdict is not Verdict.HEALTHY or not too_long:
        return silent
    return _with_verdict(silent, Verdict.UNKNOWN, look.message, now)


def _with_verdict(
    record: DeviceRecord, verdict: Verdict, message: str, now: Moment
) -> DeviceRecord:
    return structs.replace(record, verdict=verdict, since_utc=now.utc, message=message)


def known(state: HealthState, devices: Collection[DeviceID]) -> HealthState:
    """Forget devices that the node does not have any more."""
    return {device: record for device, record in state.items() if device in devices}


def to_message(
    policy: HealthPolicy, cluster: ClusterName, node: NodeName, state: HealthState
) -> HealthJudged:
    """Say which devices are not healthy, in order of their ids."""
    return HealthJudged(
        cluster=cluster,
        node=node,
        devices=tuple(
            DeviceHealth(
                device=device,
                verdict=record.verdict.value,
                taints=(_taint(policy, record),),
                message=record.message,
            )
            for device, record in sorted(state.items())
            if record.verdict is not Verdict.HEALTHY
        ),
    )


def _taint(policy: HealthPolicy, record: DeviceRecord) -> DeviceTaint:
    unhealthy = record.verdict is Verdict.UNHEALTHY
    effect = policy.unhealthy_effect if unhealthy else policy.unknown_effect
    return DeviceTaint(
        key=TAINT_KEY,
        value=record.verdict.value,
        effect=effect.value,
        time_added=record.since_utc,
    )


def recall(message: HealthJudged, state: HealthState) -> HealthState:
    """Believe what was said before a restart, unless a new verdict was given since.

    Readings that changed no verdict yet do not clear a taint.
    """
    said = {
        item.device: DeviceRecord(
            verdict=Verdict(item.verdict),
            since_utc=next((t.time_added or "" for t in item.taints), ""),
            message=item.message,
        )
        for item in message.devices
        if item.verdict in {Verdict.UNHEALTHY.value, Verdict.UNKNOWN.value}
    }
    judged = {
        device: record
        for device, record in state.items()
        if record.verdict is not Verdict.HEALTHY or device not in said
    }
    return {**said, **judged}
