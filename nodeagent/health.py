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
    """A reading of a device that is not good."""

    BAD = "Bad"
    SILENT = "Silent"


class TaintEffect(StrEnum):
    """Effect of a taint (KEP-5055)."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


class Reading(Struct, frozen=True):
    """One reading of a device that is not plainly good."""

    device: DeviceID
    symptom: Symptom
    message: str = ""
    """For people."""
    reason: str = ""
    """A code for it, in CamelCase, such as `LinkDown` or `Xid79`: what policy names."""


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
    unhealthy_effect: TaintEffect = TaintEffect.NO_SCHEDULE
    unknown_effect: TaintEffect = TaintEffect.NO_SCHEDULE
    evict_reasons: frozenset[str] = frozenset()
    """Reasons so severe that pods which use the device are ended: NoExecute once there
    were `bad_readings` of them in a row."""


class DeviceRecord(Struct, frozen=True, kw_only=True):
    """The record of a device that is not simply healthy."""

    status: HealthStatus = HealthStatus.HEALTHY
    since_utc: str = ""
    """When it became so."""
    message: str = ""
    reason: str = ""
    evicts: bool = False
    """True if enough readings in a row had a reason that evicts."""
    bad_readings: int = 0
    evicting_readings: int = 0
    """How many of the last bad readings in a row had a reason that evicts."""
    good_readings: int = 0
    good_since_s: float = 0.0
    silent_since_s: float | None = None
    read_at_s: float | None = None
    """When it was read last."""


HealthState = Mapping[DeviceID, DeviceRecord]
"""Devices of one node that are not plainly healthy."""


class HealthChange(Struct, frozen=True, kw_only=True):
    """A device whose status is not what it was, or whose pods must go from now on."""

    device: DeviceID
    before: HealthStatus
    after: HealthStatus
    evicts: bool = False
    reason: str = ""
    message: str = ""


def judge(
    policy: HealthPolicy,
    previous: HealthState,
    readings: Iterable[Reading],
    now: Moment,
    unread: Collection[DeviceID] = frozenset(),
) -> tuple[HealthState, tuple[HealthChange, ...]]:
    """Judge the devices of a node by new readings.

    A device without a reading was read and is good, but for those that are `unread`, of
    which nothing new is known. Of several readings of a device the worst counts. Looks
    at one moment count once, so judging twice changes nothing. Cost: linear in the
    devices that are not healthy.
    """
    readings_by_device = _choose_worst(policy, readings)
    state: dict[DeviceID, DeviceRecord] = {}
    changes: list[HealthChange] = []
    for device in sorted(previous.keys() | readings_by_device.keys()):
        before = previous.get(device, DeviceRecord())
        reading = readings_by_device.get(device)
        if reading is None and device in unread:
            state[device] = before
            continue
        after = _judge_device(policy, before, reading, now)
        if after is not None:
            state[device] = after
        told = DeviceRecord() if after is None else after
        if (told.status, told.evicts) != (before.status, before.evicts):
            said = before if after is None else after
            changes.append(
                HealthChange(
                    device=device,
                    before=before.status,
                    after=told.status,
                    evicts=told.evicts,
                    reason=said.reason,
                    message=said.message,
                )
            )
    return state, tuple(changes)


def _choose_worst(
    policy: HealthPolicy, readings: Iterable[Reading]
) -> dict[DeviceID, Reading]:
    worst: dict[DeviceID, Reading] = {}
    for reading in readings:
        other = worst.get(reading.device)
        if other is None or _severity_of(policy, reading) > _severity_of(policy, other):
            worst[reading.device] = reading
    return worst


def _severity_of(policy: HealthPolicy, reading: Reading) -> tuple[bool, bool]:
    return reading.symptom is Symptom.BAD, reading.reason in policy.evict_reasons


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
    evicts = reading.reason in policy.evict_reasons
    updated = structs.replace(
        record,
        bad_readings=record.bad_readings + 1,
        evicting_readings=record.evicting_readings + 1 if evicts else 0,
        good_readings=0,
        silent_since_s=None,
    )
    if updated.evicting_readings >= policy.bad_readings and not record.evicts:
        severe = structs.replace(updated, evicts=True)
        return _with_status(severe, HealthStatus.UNHEALTHY, reading, now)
    if (
        record.status is HealthStatus.UNHEALTHY
        or updated.bad_readings < policy.bad_readings
    ):
        return updated
    return _with_status(updated, HealthStatus.UNHEALTHY, reading, now)


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
    return _with_status(silent, HealthStatus.UNKNOWN, reading, now)


def _with_status(
    record: DeviceRecord, status: HealthStatus, reading: Reading, now: Moment
) -> DeviceRecord:
    return structs.replace(
        record,
        status=status,
        since_utc=now.utc,
        message=reading.message,
        reason=reading.reason,
    )


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
                reason=record.reason,
            )
            for device, record in sorted(state.items())
            if record.status is not HealthStatus.HEALTHY
        ),
    )


def _make_taint(policy: HealthPolicy, record: DeviceRecord) -> DeviceTaint:
    return DeviceTaint(
        key=names.UNHEALTHY,
        value=record.status.value,
        effect=_choose_effect(policy, record).value,
        time_added=record.since_utc,
    )


def _choose_effect(policy: HealthPolicy, record: DeviceRecord) -> TaintEffect:
    if record.status is HealthStatus.UNKNOWN:
        return policy.unknown_effect
    # The reason is asked again: a restart may have taken it off the list.
    if record.evicts and record.reason in policy.evict_reasons:
        return TaintEffect.NO_EXECUTE
    return policy.unhealthy_effect


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
            reason=device_health.reason,
            evicts=any(
                taint.effect == TaintEffect.NO_EXECUTE.value
                for taint in device_health.taints
            ),
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
