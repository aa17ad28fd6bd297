"""(prepared claim, what sources know of its devices) -> entries of `status.devices`.

The condition `Ready` is not ours: the publisher writes the health of devices, into the
same entries, as another field manager. What the API server would refuse is left out
here and named, so that the rest is written. Pure.

Source: resource.k8s.io/v1 AllocatedDeviceStatus (KEP-4817) and its validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv6Interface, ip_interface
from typing import Any

import msgspec
from msgspec import Struct

from contracts.ids import DeviceID
from nodeagent.cdi import qualify
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice
from nodeagent.sources.source import (
    DeviceCondition,
    DeviceDescription,
    NetworkDescription,
)

MAX_DATA_BYTES = 10 * 1024
MAX_ADDRESSES = 16
MAX_INTERFACE = 256
MAX_HARDWARE_ADDRESS = 128

Entry = dict[str, Any]
"""One entry of `status.devices`, as JSON."""


class LeftOut(Struct, frozen=True):
    """Something that a source says and that no status may have."""

    device: DeviceID
    field: str
    reason: str


class StatusPlan(Struct, frozen=True):
    """The device status to write into one claim."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]


def plan_status(
    records: Iterable[PreparedClaim],
    descriptions: Mapping[DeviceID, DeviceDescription],
    *,
    told: Sequence[Any] = (),
    now: str = "",
) -> StatusPlan:
    """Make an entry for each device of a claim of which there is something to say.

    `records` are those of one claim, one for each driver: one manager writes for all,
    and gives up what it leaves out. `told` are the entries that the claim has, and
    `now` is RFC 3339, whole seconds: when a condition came to be that is not in them.
    """
    before = {_key_of(entry): entry for entry in told if isinstance(entry, dict)}
    entries: dict[tuple[DeviceID, str], Entry] = {}
    left_out: list[LeftOut] = []
    for record in records:
        for device_id, device in zip(record.device_ids, record.devices, strict=True):
            known = descriptions.get(device_id, DeviceDescription())
            said, why = _describe_device(record, device, known)
            left_out += (LeftOut(device_id, *one) for one in why)
            identity = _identify_device(record, device)
            if known.conditions:
                old = before.get(_key_of(identity), {})
                said["conditions"] = [
                    _make_condition(condition, old, now)
                    for condition in known.conditions
                ]
            if said:
                # With admin access a claim may hold a device twice: the first counts.
                entries.setdefault(
                    (device_id, device.share_id),
                    {**identity, **said},
                )
    return StatusPlan(tuple(entries.values()), tuple(left_out))


def _describe_device(
    record: PreparedClaim, device: PreparedDevice, known: DeviceDescription
) -> tuple[Entry, list[tuple[str, str]]]:
    """Return the fields of an entry, and what is left out of them and why."""
    left_out: list[tuple[str, str]] = []
    ours: Entry = {}
    if device.cdi_name:
        ours["cdiDevices"] = [qualify(record.driver, device.cdi_name)]
    data = {**known.data, **ours}
    if len(msgspec.json.encode(data)) > MAX_DATA_BYTES:
        left_out.append(("data", f"it has more than {MAX_DATA_BYTES} bytes"))
        data = ours
    said: Entry = {"data": data} if data else {}
    if known.network is not None:
        network = {
            "interfaceName": known.network.interface,
            "hardwareAddress": known.network.hardware_address,
        }
        limits = (MAX_INTERFACE, MAX_HARDWARE_ADDRESS)
        for (field, text), limit in zip(tuple(network.items()), limits, strict=True):
            if len(text) > limit:
                left_out.append((field, f"it has more than {limit} characters"))
                del network[field]
        addresses = list(dict.fromkeys(_read_addresses(known.network, left_out)))
        if len(addresses) > MAX_ADDRESSES:
            left_out.append(("ips", f"there are more than {MAX_ADDRESSES}"))
        whole = {**network, "ips": addresses[:MAX_ADDRESSES]}
        said["networkData"] = {field: value for field, value in whole.items() if value}
    return said, left_out


def _read_addresses(
    network: NetworkDescription, left_out: list[tuple[str, str]]
) -> Iterator[str]:
    """Yield addresses in the one form that the API server takes."""
    for text in network.addresses:
        try:
            address = ip_interface(text)
        except ValueError:
            left_out.append(("ips", f"{text[:64]!r} is not an address with a prefix"))
            continue
        is_mapped = isinstance(address, IPv6Interface) and address.ip.ipv4_mapped
        if is_mapped or "/" not in text or "%" in text:
            left_out.append(("ips", f"{text[:64]!r} is not in the form of a status"))
            continue
        yield address.with_prefixlen


def _make_condition(condition: DeviceCondition, old: Entry, now: str) -> Entry:
    """Write a condition, with the time since which the device has that status."""
    since = now
    for before in old.get("conditions") or ():
        if (before.get("type"), before.get("status")) == (
            condition.type,
            condition.status,
        ):
            since = before.get("lastTransitionTime") or now
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since,
    }


def _key_of(entry: Entry) -> tuple[Any, ...]:
    return tuple(entry.get(key) for key in ("driver", "pool", "device", "shareID"))


def _identify_device(record: PreparedClaim, device: PreparedDevice) -> Entry:
    identity = {
        "driver": record.driver,
        "pool": device.pool,
        "device": device.device,
    }
    return {**identity, "shareID": device.share_id} if device.share_id else identity
