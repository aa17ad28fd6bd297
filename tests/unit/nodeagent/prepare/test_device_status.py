"""What a claim's status is told of prepared devices, within what its API allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from contracts.ids import DeviceID, DeviceName, DriverName
from nodeagent.prepare.device_status import (
    MAX_ADDRESSES,
    MAX_DATA_BYTES,
    StatusPlan,
    plan_status,
)
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice
from nodeagent.sources.source import (
    DeviceCondition,
    DeviceDescription,
    NetworkDescription,
)
from tests.builders.prepared import DRIVER, POOL, asked

NIC = DeviceID(DRIVER, POOL, DeviceName("nic-0"))
IDENTITY = {"driver": DRIVER, "pool": POOL, "device": "nic-0"}


def record(*devices: PreparedDevice, driver: str = DRIVER) -> PreparedClaim:
    return PreparedClaim(
        claim=asked(),
        driver=DriverName(driver),
        devices=devices,
        since="2026-01-01T00:00:00Z",
    )


def prepared(**more: Any) -> PreparedDevice:
    return PreparedDevice(request="nic", pool=POOL, device=NIC.device, **more)


def plan(**network: Any) -> StatusPlan:
    nic = DeviceDescription(
        network=NetworkDescription(**{"interface": "eth0", **network})
    )
    return plan_status([record(prepared())], {NIC: nic})


def test_an_entry_says_what_source_and_record_know() -> None:
    network = NetworkDescription(
        interface="eth0",
        hardware_address="02:00:00:00:00:05",
        addresses=("10.0.0.5/24", "fd00:0::5/64"),
    )
    nic = DeviceDescription(
        data={"numaNode": 1, "disks": ("nvme0n1",)}, network=network
    )
    claim = record(prepared(cdi_name="uid-0-nic-0", share_id="s"))
    planned = plan_status([claim], {NIC: nic})
    entry = {
        **IDENTITY,
        "shareID": "s",
        "data": {
            "numaNode": 1,
            "disks": ["nvme0n1"],
            "cdiDevices": [f"k8s.{DRIVER}/claim=uid-0-nic-0"],
        },
        "networkData": {
            "interfaceName": "eth0",
            "hardwareAddress": "02:00:00:00:00:05",
            "ips": ["10.0.0.5/24", "fd00::5/64"],
        },
    }
    assert msgspec.json.decode(msgspec.json.encode(planned.entries)) == [entry]
    assert planned.left_out == ()


def test_a_device_of_which_nothing_is_known_has_no_entry() -> None:
    """Else it would have an entry that says nothing, and a write for it."""
    assert plan_status([record(prepared())], {}).entries == ()


def test_all_drivers_of_a_claim_are_in_one_answer() -> None:
    """One manager gives up what it does not repeat."""
    records = [
        record(prepared(cdi_name="a")),
        record(prepared(cdi_name="b"), driver="other.example.com"),
    ]
    entries = plan_status(records, {}).entries
    assert [entry["driver"] for entry in entries] == [DRIVER, "other.example.com"]


def test_a_device_that_is_held_twice_has_one_entry() -> None:
    """The list is a map by device and share; admin access may repeat a device."""
    twice = (prepared(cdi_name="a", is_admin=True), prepared(cdi_name="b"))
    (entry,) = plan_status([record(*twice)], {}).entries
    assert entry["data"] == {"cdiDevices": [f"k8s.{DRIVER}/claim=a"]}


@pytest.mark.parametrize(
    ("bytes_over", "is_kept"), [(0, True), (1, False)], ids=["at", "over"]
)
def test_data_has_at_most_ten_kib(bytes_over: int, is_kept: bool) -> None:
    """More is left out whole and named; the rest of the entry stands."""
    head = len(msgspec.json.encode({"a": ""}))
    nic = DeviceDescription(
        data={"a": "x" * (MAX_DATA_BYTES - head + bytes_over)},
        network=NetworkDescription(interface="eth0"),
    )
    planned = plan_status([record(prepared())], {NIC: nic})
    (entry,) = planned.entries
    assert ("data" in entry) is is_kept
    assert entry["networkData"] == {"interfaceName": "eth0"}
    assert [one.field for one in planned.left_out] == [] if is_kept else ["data"]


@pytest.mark.parametrize(
    ("network", "field"),
    [
        ({"interface": "x" * 257}, "interfaceName"),
        ({"hardware_address": "x" * 129}, "hardwareAddress"),
        ({"addresses": ("10.0.0.300/24",)}, "ips"),
        ({"addresses": ("10.0.0.3",)}, "ips"),
        ({"addresses": ("::ffff:10.0.0.3/120",)}, "ips"),
        ({"addresses": ("fe80::1%eth0/64",)}, "ips"),
        ({"addresses": ("; rm -rf /",)}, "ips"),
    ],
)
def test_what_the_api_would_refuse_is_left_out_and_named(
    network: dict[str, Any], field: str
) -> None:
    planned = plan(**network)
    assert [(one.device, one.field) for one in planned.left_out] == [(NIC, field)]
    assert all(field not in entry["networkData"] for entry in planned.entries)


def test_addresses_are_distinct_and_at_most_sixteen() -> None:
    some = [f"10.0.0.{number}/24" for number in range(1, MAX_ADDRESSES + 2)]
    planned = plan(addresses=(some[0], *some))
    (entry,) = planned.entries
    assert entry["networkData"]["ips"] == some[:MAX_ADDRESSES]
    assert [one.field for one in planned.left_out] == ["ips"]
    assert plan(addresses=(some[0], *some[:16])).left_out == ()


def test_a_condition_keeps_the_time_of_its_status() -> None:
    """The condition of another manager is neither repeated nor taken for ours."""

    def conditions(status: str, told: Sequence[Any], now: str) -> Any:
        link = DeviceCondition(type="LinkUp", status=status, reason="Carrier")
        nic = DeviceDescription(conditions=(link,))
        (entry,) = plan_status(
            [record(prepared())], {NIC: nic}, told=told, now=now
        ).entries
        return entry

    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "0"}
    first = conditions("True", [{**IDENTITY, "conditions": [ready]}, 7], "1")
    assert first["conditions"] == [
        {
            "type": "LinkUp",
            "status": "True",
            "reason": "Carrier",
            "message": "",
            "lastTransitionTime": "1",
        }
    ]
    assert conditions("True", [first], "2") == first
    (turned,) = conditions("False", [first], "3")["conditions"]
    assert (turned["status"], turned["lastTransitionTime"]) == ("False", "3")
    other = {**first, "device": "nic-1"}
    assert (
        conditions("True", [other], "4")["conditions"][0]["lastTransitionTime"] == "4"
    )
