"""What a command answers, and what of it is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contracts.errors import DecodeError
from nodeagent.health import Symptom
from nodeagent.sources.command.answer import ReadAnswer, read_answer
from nodeagent.sources.source import (
    DeviceCondition,
    DeviceDescription,
    NetworkDescription,
)

CONDITION = {"type": "LinkUp", "status": "True", "reason": "Carrier"}


def read(*devices: Any, last: ReadAnswer | None = None) -> ReadAnswer:
    data = json.dumps({"devices": devices}).encode()
    return read_answer(data, last.devices if last else {})


def test_a_device_is_read_whole() -> None:
    """Attributes of every type, capacity, edits and health."""
    answer = read(
        {
            "name": "disk-0",
            "attributes": {
                "model": "x",
                "size": 5,
                "removable": False,
                "firmware": {"version": "1.2.3"},
            },
            "capacity": {"size": "10Gi"},
            "edits": {"deviceNodes": [{"path": "/dev/loop0"}], "env": ["A=b"]},
            "health": {"symptom": "Bad", "reason": "Worn", "message": "99 % used"},
        }
    )
    device = answer.devices["disk-0"]
    announced = device.to_device()
    assert announced.attributes["model"].string_value == "x"
    assert announced.attributes["size"].int_value == 5
    assert announced.attributes["removable"].bool_value is False
    assert announced.attributes["firmware"].version_value == "1.2.3"
    assert str(announced.capacity["size"].value) == "10Gi"
    assert device.edits.device_nodes[0].path == "/dev/loop0"
    assert device.health is not None
    assert (device.health.symptom, device.health.reason) == (Symptom.BAD, "Worn")
    assert answer.refusals == {}


def test_a_device_s_status_is_described_as_the_api_has_it() -> None:
    """Under the names of the API, with the health left to `health`."""
    answer = read(
        {
            "name": "nic-0",
            "data": {"ports": [{"speed": 100}]},
            "conditions": [
                CONDITION,
                {
                    "type": "example.com/Trained",
                    "status": "Unknown",
                    "reason": "Busy",
                    "message": "training",
                },
            ],
            "networkData": {
                "interfaceName": "net1",
                "hardwareAddress": "02:00:00:00:00:05",
                "ips": ["10.0.0.5/24"],
            },
        },
        {"name": "plain"},
    )
    assert answer.refusals == {}
    assert answer.devices["plain"].describe() == DeviceDescription()
    assert answer.devices["nic-0"].describe() == DeviceDescription(
        data={"ports": [{"speed": 100}]},
        conditions=(
            DeviceCondition(type="LinkUp", status="True", reason="Carrier"),
            DeviceCondition(
                type="example.com/Trained",
                status="Unknown",
                reason="Busy",
                message="training",
            ),
        ),
        network=NetworkDescription(
            interface="net1",
            hardware_address="02:00:00:00:00:05",
            addresses=("10.0.0.5/24",),
        ),
    )


@pytest.mark.parametrize(
    ("attributes", "card"),
    [
        ({"uuid": "U-1", "resource.kubernetes.io/pciBusID": "0000:01:00.0"}, "U-1"),
        ({"resource.kubernetes.io/pciBusID": "0000:01:00.0"}, "0000:01:00.0"),
        ({"uuid": 7, "model": "x"}, ""),
    ],
)
def test_attributes_may_tell_the_card(attributes: dict[str, Any], card: str) -> None:
    answer = read({"name": "card-0", "attributes": attributes})
    assert answer.devices["card-0"].card == card


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ({"attributes": {"model": [1]}}, "attributes[...]: Expected"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"capacity": {"size": "lots"}}, "'lots' is not a quantity"),
        ({"health": {"symptom": "Sad", "reason": "X"}}, "health.symptom: Invalid"),
        ({"health": {"symptom": "Bad", "reason": "so so"}}, "health.reason: Expected"),
        ({"edits": {"deviceNodes": [{"path": "/dev/../etc/shadow"}]}}, "edits: device"),
        ({"edits": {"mounts": [{"hostPath": "x", "containerPath": "/y"}]}}, "edits: "),
        ({"edits": {"deviceNodes": [{"path": "/dev/x", "mayor": 1}]}}, "`mayor`"),
        ({"edits": {"env": ["no equals sign"]}}, "edits: env[0]: must be NAME=value"),
        ({"data": [1]}, "data: Expected `object`"),
        ({"conditions": [{**CONDITION, "status": "Yes"}]}, "status: Invalid enum"),
        ({"conditions": [{**CONDITION, "reason": ""}]}, "reason: Expected"),
        ({"conditions": [{**CONDITION, "type": "a b"}]}, "type: Expected"),
        ({"conditions": [{**CONDITION, "type": "Link\n"}]}, "type: Expected"),
        ({"conditions": [{**CONDITION, "type": "Ready"}]}, "Ready is what `health`"),
        ({"conditions": [CONDITION, CONDITION]}, "conditions: two have one type"),
        (
            {"conditions": [{**CONDITION, "type": f"L{n}"} for n in range(8)]},
            "conditions: Expected",
        ),
        ({"networkData": {"ip": "10.0.0.5/24"}}, "unknown field `ip`"),
    ],
)
def test_a_broken_device_is_refused_alone_and_stays_as_it_was(
    broken: dict[str, Any], rule: str
) -> None:
    """By name, field and rule; it is not lost, and the others are taken."""
    last = read({"name": "a", "capacity": {"size": 1}})
    answer = read({"name": "a", **broken}, {"name": "b"}, last=last)
    assert rule in answer.refusals["a"]
    assert answer.devices["a"] == last.devices["a"]
    assert list(answer.devices) == ["a", "b"]
    assert list(read({"name": "a", **broken}).devices) == []


def test_what_has_no_name_is_refused_by_its_place() -> None:
    """Nothing else tells it from others."""
    answer = read({"attributes": {}}, 7, {"name": 5}, {"name": "x" * 64})
    assert list(answer.refusals) == [f"devices[{index}]" for index in range(4)]
    assert answer.devices == {}


def test_of_two_of_one_name_the_first_is_taken() -> None:
    """Claims name devices: two of one name would be one."""
    answer = read({"name": "a", "capacity": {"size": 1}}, {"name": "a"})
    assert answer.devices["a"].capacity
    assert answer.refusals == {"a": "name: two devices have it"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b'{"devices": {}}',
        b'{"devices": [], "more": 1}',
        b'{"devices": [\xff]}',
        b"[" * 100_000,
        json.dumps({"devices": [{}] * 4097}).encode(),
    ],
)
def test_what_is_no_answer_is_refused_as_a_whole(data: bytes) -> None:
    """A partial answer would look as if devices had gone."""
    with pytest.raises(DecodeError):
        read_answer(data, {})
