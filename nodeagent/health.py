"""Decides from raw readings whether a device is healthy: hysteresis lives here.

One bad reading proves little and one good reading even less, so a status changes only
after several. A device that nobody hears of for a while becomes Unknown. Pure: moments
are arguments, and what is plainly healthy costs no memory. Knows nothing of how a
device is read or who is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, structs

from contracts import names
from contracts.device import DeviceTaint
from contracts.ids import ClusterName, DeviceID, NodeName
from contracts.messages import DeviceHealth, HealthJudged


class HealthStatus(StrEnum):
    """The health of a device, as far as its readings prove it."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class Symptom(StrEnum):
    """What a reading of a device shows when it is not plainly good."""

    BAD = "Bad"
    SILENT = "Silent"


class TaintEffect(StrEnum):
    """What a taint does (KEP-5055)."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


class Reading(Struct, frozen=True):
    """One reading of a device that is not plainly good."""

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
    """How much evidence changes a status, and how the device is tainted then."""

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

    status: HealthStatus = HealthStatus.HEALTHY
    since_utc: str = ""
    """When it became so."""
    message: str = ""
    bad_readings: int = 0
    good_readings: int = 0
    good_since_s: float = 0.0
    silent_since_s: float | None = None
    read_at_s: float | None = None
    """When it was read last."""


HealthState = Mapping[DeviceID, DeviceRecord]
"""Devices of one node that are not plainly healthy."""


class HealthChange(Struct, frozen=True, kw_only=True):
    """A device whose status is not what it was."""

    device: DeviceID
    before: HealthStatus
    after: HealthStatus
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
    readings_by_device = {reading.device: reading for reading in readings}
    state: dict[DeviceID, DeviceRecord] = {}
    changes: list[HealthChange] = []
    for device in sorted(previous.keys() | readings_by_device.keys()):
        before = previous.get(device, DeviceRecord())
        after = _judge_device(policy, before, readings_by_device.get(device), now)
        if after is not None:
            state[device] = after
        status = HealthStatus.HEALTHY if after is None else after.status
        if status is not before.status:
            message = before.message if after is None else after.message
            changes.append(
                HealthChange(
                    device=device, before=before.status, after=status, message=message
                )
            )
    return state, tuple(changes)


def _judge_device(
    policy: HealthPolicy, record: DeviceRecord, reading: Reading | None, now: Moment
) -> DeviceRecord | None:
    """Return the record after a reading; None: the device is plainly healthy."""
    if record.read_at_s == now.monotonic_s:
        return record
    dated = structs.replace(record, read_at_s=now.monotonic_s)
    if reading is None:
        return _after_good(policy, dated, now)
    if reading.symptom is Symptom.BAD:
        return _after_bad(policy, dated, reading, now)
    return _after_silence(policy, dated, reading, now)


def _after_good(
    policy: HealthPolicy, record: DeviceRecord, now: Moment
) -> DeviceRecord | None:
    if record.status is HealthStatus.HEALTHY:
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
    policy: HealthPolicy, record: DeviceRecord, reading: Reading, now: Moment
) -> DeviceRecord:
    updated = structs.replace(
        record,
        bad_readings=record.bad_readings + 1,
        good_readings=0,
        silent_since_s=None,
    )
    if (
        record.status is HealthStatus.UNHEALTHY
        or updated.bad_readings < policy.bad_readings
    ):
        return updated
    return _with_status(updated, HealthStatus.UNHEALTHY, reading.message, now)


def _after_silence(
    policy: HealthPolicy, record: DeviceRecord, reading: Reading, now: Moment
) -> DeviceRecord:
    """Wait; silence neither ends a row of bad readings nor makes one."""
    since_s = now.monotonic_s
    if record.silent_since_s is not None:
        since_s = record.silent_since_s
    silent = structs.replace(record, good_readings=0, silent_since_s=since_s)
    too_long = now.monotonic_s - since_s >= policy.unknown_after_s
    if record.status is not HealthStatus.HEALTHY or not too_long:
        return silent
    return _with_status(silent, HealthStatus.UNKNOWN, reading.message, now)


def _with_status(
    record: DeviceRecord, status: HealthStatus, message: str, now: Moment
) -> DeviceRecord:
    return structs.replace(record, status=status, since_utc=now.utc, message=message)


def keep_devices(state: HealthState, devices: Collection[DeviceID]) -> HealthState:
    """Keep what is about devices that the node still has."""
    return {device: record for device, record in state.items() if device in devices}


def to_message(
    policy: HealthPolicy, cluster: ClusterName, node: NodeName, state: HealthState
) -> HealthJudged:
    """Write which devices are not healthy, in order of their ids."""
    return HealthJudged(
        cluster=cluster,
        node=node,
        devices=tuple(
            DeviceHealth(
                device=device,
                verdict=record.status.value,
                taints=(_make_taint(policy, record),),
                message=record.message,
            )
            for device, record in sorted(state.items())
            if record.status is not HealthStatus.HEALTHY
        ),
    )


def _make_taint(policy: HealthPolicy, record: DeviceRecord) -> DeviceTaint:
    unhealthy = record.status is HealthStatus.UNHEALTHY
    effect = policy.unhealthy_effect if unhealthy else policy.unknown_effect
    return DeviceTaint(
        key=names.UNHEALTHY,
        value=record.status.value,
        effect=effect.value,
        time_added=record.since_utc,
    )


def restore(message: HealthJudged, state: HealthState) -> HealthState:
    """Go on from what was sent before a restart, but for what has changed since.

    Readings that changed no status yet do not clear a taint.
    """
    sent = {
        device_health.device: DeviceRecord(
            status=HealthStatus(device_health.verdict),
            since_utc=next(
                (taint.time_added or "" for taint in device_health.taints), ""
            ),
            message=device_health.message,
        )
        for device_health in message.devices
        if device_health.verdict
        in {HealthStatus.UNHEALTHY.value, HealthStatus.UNKNOWN.value}
    }
    judged = {
        device: record
        for device, record in state.items()
        if record.status is not HealthStatus.HEALTHY or device not in sent
    }
    return {**sent, **judged}
