"""A command's answer: one JSON object with all devices and their health.

Each device is read by itself, so one that cannot be taken is refused alone, with its
name, field and rule. Pure. The format is described in docs/drivers.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from contracts.codec import Codec, convert
from contracts.device import Device, DeviceCapacity
from contracts.errors import DecodeError
from contracts.ids import DeviceName
from contracts.messages import MAX_NODE_DEVICES
from contracts.quantity import Quantity
from nodeagent.cdi import ContainerEdits, find_violations
from nodeagent.health import Symptom
from nodeagent.sources.attributes import AttributeValue, make_attribute
from nodeagent.sources.settings import SettingsPart
from nodeagent.sources.source import (
    DeviceCondition,
    DeviceDescription,
    NetworkDescription,
)

REASON = r"^[A-Z][A-Za-z0-9]{0,63}$"
HEALTH_CONDITION = "Ready"
"""The type of the condition that the publisher writes, of the device's health."""
MAX_CONDITIONS = 7
"""DRA takes eight of a device; one is of its health."""
_CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?\Z"
_CARD_ATTRIBUTES = ("uuid", "resource.kubernetes.io/pciBusID")


class DeviceReport(SettingsPart, frozen=True, kw_only=True):
    """A device that is not good, and why."""

    symptom: Symptom
    reason: Annotated[str, Meta(pattern=REASON)]
    message: Annotated[str, Meta(max_length=1024)] = ""


class AnsweredCondition(SettingsPart, frozen=True, kw_only=True):
    """A condition of a device, for the status of the claim that holds it."""

    type: Annotated[str, Meta(pattern=_CONDITION_TYPE)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(pattern=_CONDITION_REASON)]
    message: Annotated[str, Meta(max_length=32768)] = ""


class AnsweredNetwork(SettingsPart, frozen=True, kw_only=True):
    """The network interface that a device is: networkData of the claim's status."""

    interface_name: str = ""
    hardware_address: str = ""
    ips: tuple[str, ...] = ()
    """With the length of their prefixes, such as `10.0.0.5/24`."""


class AnsweredDevice(SettingsPart, frozen=True, kw_only=True):
    """One device of an answer."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    attributes: dict[str, AttributeValue] = {}
    capacity: dict[str, Quantity] = {}
    edits: ContainerEdits = ContainerEdits()
    health: DeviceReport | None = None
    data: dict[str, Any] = {}
    conditions: Annotated[
        tuple[AnsweredCondition, ...], Meta(max_length=MAX_CONDITIONS)
    ] = ()
    network_data: AnsweredNetwork | None = None

    @property
    def card(self) -> str:
        """The first attribute that tells the hardware from other; empty: none does."""
        values = (self.attributes.get(name) for name in _CARD_ATTRIBUTES)
        return next((value for value in values if isinstance(value, str)), "")

    def to_device(self) -> Device:
        """Return the device as it is announced."""
        return Device(
            name=DeviceName(self.name),
            attributes={k: make_attribute(v) for k, v in self.attributes.items()},
            capacity={k: DeviceCapacity(value=v) for k, v in self.capacity.items()},
        )

    def describe(self) -> DeviceDescription:
        """Return what the status of a claim says of the device."""
        network = self.network_data
        return DeviceDescription(
            data=self.data,
            conditions=tuple(
                DeviceCondition(
                    type=said.type,
                    status=said.status,
                    reason=said.reason,
                    message=said.message,
                )
                for said in self.conditions
            ),
            network=None
            if network is None
            else NetworkDescription(
                interface=network.interface_name,
                hardware_address=network.hardware_address,
                addresses=network.ips,
            ),
            card=self.card,
        )


class CommandAnswer(SettingsPart, frozen=True, kw_only=True):
    """An answer whose devices are not decoded yet."""

    devices: Annotated[tuple[Any, ...], Meta(max_length=MAX_NODE_DEVICES)]


class ReadAnswer(Struct, frozen=True, kw_only=True):
    """An answer as far as it can be taken."""

    devices: Mapping[str, AnsweredDevice] = {}
    """By name, in the order of the answer."""
    refusals: Mapping[str, str] = {}
    """Refused devices, by name or place, with field and rule."""


_CODEC = Codec[CommandAnswer](CommandAnswer, "answer")


def read_answer(data: bytes, last: Mapping[str, AnsweredDevice]) -> ReadAnswer:
    """Read an answer; a device that is refused stays as it was `last`.

    Raises:
        DecodeError: it is no JSON object with devices.
    """
    devices: dict[str, AnsweredDevice] = {}
    refusals: dict[str, str] = {}
    for index, value in enumerate(_CODEC.decode(data).devices):
        place = f"devices[{index}]"
        named = value.get("name") if isinstance(value, dict) else None
        name = named if isinstance(named, str) and len(named) <= 63 else place
        if name in devices:
            refusals[name] = "name: two devices have it"
            continue
        try:
            devices[name] = _read_device(value, place)
        except DecodeError as error:
            refusals[name] = f"{error.field.removeprefix('$.')}: {error.reason}"
            if name in last:
                devices[name] = last[name]
    return ReadAnswer(devices=devices, refusals=refusals)


def _read_device(value: Any, place: str) -> AnsweredDevice:
    device = convert(value, AnsweredDevice, place)
    for violation in find_violations(device.edits):
        raise DecodeError(place, "edits", violation)
    types = [condition.type for condition in device.conditions]
    if HEALTH_CONDITION in types:
        raise DecodeError(
            place, "conditions", f"{HEALTH_CONDITION} is what `health` says"
        )
    if len(set(types)) < len(types):
        raise DecodeError(place, "conditions", "two have one type")
    return device
