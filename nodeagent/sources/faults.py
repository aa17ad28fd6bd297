"""When which simulated device is faulty: fault descriptions made into spans of time.

Pure: seconds since the start are an argument, and jitter comes from the fleet's seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from math import inf

from msgspec import Struct

from contracts.ids import DeviceID, NodeName
from nodeagent.errors import FleetError
from nodeagent.health import Reading, Symptom
from nodeagent.sources import duration
from nodeagent.sources.expand import Nodes
from nodeagent.sources.fleet import FaultSpec


class FaultVerdict(StrEnum):
    """What a fault makes of a device, or (`Away`) of a node."""

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

    def is_active(self, elapsed_s: float) -> bool:
        """Tell whether the fault is there after so many seconds."""
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
        FleetError: a fault breaks a rule, or is about nothing in the fleet.
    """
    return tuple(
        span
        for index, spec in enumerate(specs)
        for span in _spans(spec, index, nodes, file)
    )


def faults_at(spans: Iterable[FaultSpan], elapsed_s: float) -> FaultState:
    """Say what is wrong after so many seconds; bad readings hide silent ones."""
    looks: dict[NodeName, dict[DeviceID, Reading]] = {}
    removed: dict[NodeName, frozenset[DeviceID]] = {}
    away: set[NodeName] = set()
    for span in spans:
        if not span.is_active(elapsed_s):
            continue
        match span.verdict:
            case FaultVerdict.AWAY:
                away.add(span.node)
            case FaultVerdict.REMOVED:
                before = removed.get(span.node, frozenset())
                removed[span.node] = before | span.devices
            case FaultVerdict.UNHEALTHY:
                bad = _looks(span, Symptom.BAD)
                looks[span.node] = looks.get(span.node, {}) | bad
            case FaultVerdict.UNKNOWN:
                silent = _looks(span, Symptom.SILENT)
                looks[span.node] = silent | looks.get(span.node, {})
    return FaultState(
        readings={
            node: tuple(
                look
                for device, look in found.items()
                if device not in removed.get(node, frozenset())
            )
            for node, found in looks.items()
        },
        removed=removed,
        away=frozenset(away),
    )


def _looks(span: FaultSpan, symptom: Symptom) -> dict[DeviceID, Reading]:
    return {
        device: Reading(device, symptom, span.message)
        for device in sorted(span.devices)
    }


def _spans(spec: FaultSpec, index: int, nodes: Nodes, file: str) -> Iterable[FaultSpan]:
    at = f"faults[{index}]"
    names = ", ".join(FaultVerdict)
    if spec.verdict not in set(FaultVerdict):
        raise FleetError(file, f"{at}.verdict", f"must be one of {names}")
    verdict = FaultVerdict(spec.verdict)
    start_s = _seconds(spec.at, file, f"{at}.at")
    lasts_s = _seconds(spec.duration, file, f"{at}.for") if spec.duration else inf
    jitter_s = _seconds(spec.jitter, file, f"{at}.jitter")
    found = [node for node in nodes.places if fnmatchcase(node, spec.node)]
    if not found:
        raise FleetError(file, f"{at}.node", f"no node is named {spec.node!r}")
    if verdict is FaultVerdict.AWAY and spec.device != "*":
        raise FleetError(file, f"{at}.device", "must be absent: Away is about a node")
    spans = []
    for node in found:
        devices = frozenset(
            device
            for device in nodes.device_ids_of(node)
            if fnmatchcase(device.device, spec.device)
        )
        begin_s = start_s + jitter_s * _fraction(f"{nodes.fleet.seed}/{index}/{node}")
        message = spec.message or f"simulated: {verdict}"
        if devices or verdict is FaultVerdict.AWAY:
            spans.append(
                FaultSpan(node, devices, verdict, begin_s, begin_s + lasts_s, message)
            )
    if not spans:
        rule = f"no device of {spec.node!r} is named {spec.device!r}"
        raise FleetError(file, f"{at}.device", rule)
    return spans


def _seconds(value: str, file: str, field: str) -> float:
    seconds = duration.duration_s(value)
    if seconds is None:
        raise FleetError(file, field, duration.RULE)
    return seconds


def _fraction(seed: str) -> float:
    return int.from_bytes(sha256(seed.encode()).digest()[:8]) / 2**64
