"""When which simulated device is faulty: fault descriptions made into spans of time.

Reads the durations of the fleet file, such as `20s`, `500ms` and `2m`. Pure: seconds
since the start are an argument, and jitter comes from the fleet's seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from math import inf

from msgspec import Struct

from contracts.ids import DeviceID, NodeName
from nodeagent.errors import SettingsError
from nodeagent.health import Reading, Symptom
from nodeagent.sources.expand import Nodes
from nodeagent.sources.fleet import SIMULATED, FaultSpec

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)", re.ASCII)
_DURATION_RULE = "must be a duration such as 500ms, 20s, 2m or 1h"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class FaultVerdict(StrEnum):
    """The effect of a fault on a device, or (`Away`) on a node."""

    UNHEALTHY = "Unhealthy"
    """Every reading of the device is bad."""
    UNKNOWN = "Unknown"
    """The device cannot be read."""
    REMOVED = "Removed"
    """The device is not in the inventory."""
    AWAY = "Away"
    """The node stops its heartbeat."""


class FaultSpan(Struct, frozen=True):
    """A fault of some devices of one node, from `start_s` until `end_s`."""

    node: NodeName
    devices: frozenset[DeviceID]
    verdict: FaultVerdict
    start_s: float
    end_s: float
    message: str
    reason: str

    def is_active(self, elapsed_s: float) -> bool:
        """True if the fault is active after so many seconds."""
        return self.start_s <= elapsed_s < self.end_s


class FaultState(Struct, frozen=True, kw_only=True):
    """All faults at one moment."""

    readings: dict[NodeName, tuple[Reading, ...]] = {}
    removed: dict[NodeName, frozenset[DeviceID]] = {}
    away: frozenset[NodeName] = frozenset()


def plan_faults(
    specs: Iterable[FaultSpec], nodes: Nodes, file: str
) -> tuple[FaultSpan, ...]:
    """Find the nodes and devices of each fault, and when it comes and goes.

    Raises:
        SettingsError: a fault breaks a rule, or is about nothing in the fleet.
    """
    return tuple(
        span
        for index, spec in enumerate(specs)
        for span in _plan_spans(spec, index, nodes, file)
    )


def find_faults(spans: Iterable[FaultSpan], elapsed_s: float) -> FaultState:
    """Return what is wrong after so many seconds; bad readings hide silent ones."""
    readings: dict[NodeName, dict[DeviceID, Reading]] = {}
    removed: dict[NodeName, frozenset[DeviceID]] = {}
    away: set[NodeName] = set()
    for span in spans:
        if not span.is_active(elapsed_s):
            continue
        match span.verdict:
            case FaultVerdict.AWAY:
                away.add(span.node)
            case FaultVerdict.REMOVED:
                earlier = removed.get(span.node, frozenset())
                removed[span.node] = earlier | span.devices
            case FaultVerdict.UNHEALTHY:
                bad = _make_readings(span, Symptom.BAD)
                readings[span.node] = readings.get(span.node, {}) | bad
            case FaultVerdict.UNKNOWN:
                silent = _make_readings(span, Symptom.SILENT)
                readings[span.node] = silent | readings.get(span.node, {})
    return FaultState(
        readings={
            node: tuple(
                reading
                for device, reading in readings_by_device.items()
                if device not in removed.get(node, frozenset())
            )
            for node, readings_by_device in readings.items()
        },
        removed=removed,
        away=frozenset(away),
    )


def _make_readings(span: FaultSpan, symptom: Symptom) -> dict[DeviceID, Reading]:
    return {
        device: Reading(device, symptom, span.message, span.reason)
        for device in sorted(span.devices)
    }


def _plan_spans(
    spec: FaultSpec, index: int, nodes: Nodes, file: str
) -> Iterable[FaultSpan]:
    # First what the description says by itself.
    at = f"faults[{index}]"
    names = ", ".join(FaultVerdict)
    if spec.verdict not in set(FaultVerdict):
        raise SettingsError(file, f"{at}.verdict", f"must be one of {names}")
    verdict = FaultVerdict(spec.verdict)
    start_s = _read_seconds(spec.at, file, f"{at}.at")
    lasts_s = _read_seconds(spec.duration, file, f"{at}.for") if spec.duration else inf
    jitter_s = _read_seconds(spec.jitter, file, f"{at}.jitter")
    # Then its nodes, and of each the devices; one that has none is passed over.
    matching_nodes = [node for node in nodes.by_name if fnmatchcase(node, spec.node)]
    if not matching_nodes:
        raise SettingsError(file, f"{at}.node", f"no node is named {spec.node!r}")
    if verdict is FaultVerdict.AWAY and spec.device != "*":
        raise SettingsError(
            file, f"{at}.device", "must be absent, as Away is for nodes"
        )
    spans = []
    for node in matching_nodes:
        devices = frozenset(
            device
            for device in nodes.list_device_ids(node)
            if fnmatchcase(device.device, spec.device)
        )
        begin_s = start_s + jitter_s * _fraction_of(
            f"{nodes.fleet.seed}/{index}/{node}"
        )
        # Shown behind the reason, which says by default that it is simulated.
        text = str(verdict) if spec.reason == SIMULATED else f"simulated: {verdict}"
        message = spec.message or text
        if devices or verdict is FaultVerdict.AWAY:
            spans.append(
                FaultSpan(
                    node,
                    devices,
                    verdict,
                    begin_s,
                    begin_s + lasts_s,
                    message,
                    spec.reason,
                )
            )
    if not spans:
        rule = f"no device of {spec.node!r} is named {spec.device!r}"
        raise SettingsError(file, f"{at}.device", rule)
    return spans


def _read_seconds(value: str, file: str, field: str) -> float:
    match = _DURATION.fullmatch(value)
    if match is None:
        raise SettingsError(file, field, _DURATION_RULE)
    return float(match[1]) * _SECONDS[match[2]]


def _fraction_of(seed: str) -> float:
    return int.from_bytes(sha256(seed.encode()).digest()[:8]) / 2**64
