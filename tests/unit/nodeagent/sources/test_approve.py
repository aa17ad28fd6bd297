"""Between a source and the bus: what of a listing may be announced."""

from __future__ import annotations

import pytest

from contracts.device import CounterSet, Device, DeviceAttribute, ResourcePool
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolID, PoolName
from contracts.messages import MAX_NODE_DEVICES
from nodeagent.inventory import NodeDevices
from nodeagent.sources.approve import approve

NODE, DRIVER, POOL = NodeName("n"), DriverName("d.io"), PoolName("n")
TEXT = DeviceAttribute(string_value="x")
HUGE = DeviceAttribute(string_value="x" * 65)


def device(name: str, **attributes: DeviceAttribute) -> Device:
    return Device(name=DeviceName(name), attributes=attributes)


def listing(*devices: Device, pool: PoolName = POOL) -> NodeDevices:
    content = ResourcePool(driver=DRIVER, name=pool, devices=devices)
    return NodeDevices(node=NODE, pools=(content,))


def device_id(name: str) -> DeviceID:
    return DeviceID(DRIVER, POOL, DeviceName(name))


def names_of(devices: NodeDevices) -> list[str]:
    return [str(found.device) for found in devices.device_ids]


def test_a_device_that_breaks_a_rule_is_left_out_alone() -> None:
    """The others are announced, and the rule is named with its field."""
    found = approve(listing(device("a"), device("B!"), device("c")), None, None, {})
    assert names_of(found.devices) == ["a", "c"]
    assert list(found.refusals) == [device_id("B!")]
    assert found.refusals[device_id("B!")].startswith("name: Invalid value")


def test_a_device_that_breaks_a_rule_now_stays_as_it_was() -> None:
    """It is there; only what is said of it cannot be taken."""
    last = listing(device("a", model=TEXT))
    found = approve(listing(device("a", model=HUGE)), last, None, {})
    assert found.devices == last
    assert "model" in found.refusals[device_id("a")]


def test_a_device_that_is_not_listed_is_gone() -> None:
    """What a source leaves out is not kept."""
    found = approve(listing(device("b")), listing(device("a")), None, {})
    assert names_of(found.devices) == ["b"]


def test_of_two_devices_of_one_name_the_first_is_taken() -> None:
    """Claims name devices: two of one name would be one."""
    found = approve(listing(device("a", model=TEXT), device("a")), None, None, {})
    assert found.devices == listing(device("a", model=TEXT))
    assert found.refusals == {device_id("a"): "name: two devices have it"}


def test_attributes_are_added_and_count() -> None:
    """They win, and a device that has too many by them is left out."""
    found = approve(listing(device("a", site=HUGE)), None, None, {"site": TEXT})
    assert found.devices == listing(device("a", site=TEXT))
    full = device("a", **{f"a{index}": TEXT for index in range(32)})
    found = approve(listing(full), None, None, {"site": TEXT})
    assert names_of(found.devices) == []
    assert "must not exceed 32" in found.refusals[device_id("a")]


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (
            listing(device("a"), pool=PoolName("other")),
            "pool d.io/other: must be d.io/n",
        ),
        (
            NodeDevices(
                node=NODE,
                pools=(
                    ResourcePool(
                        driver=DRIVER,
                        name=POOL,
                        shared_counters=(CounterSet(name="c"),),
                    ),
                ),
            ),
            "sharedCounters",
        ),
        (
            listing(*(device(f"a-{index}") for index in range(MAX_NODE_DEVICES + 1))),
            f"more than {MAX_NODE_DEVICES}",
        ),
    ],
)
def test_what_cannot_be_told_apart_is_refused_as_a_whole(
    listed: NodeDevices, said: str
) -> None:
    """Another's pool, wrong counters, or too much of everything."""
    with pytest.raises(ValueError, match=said):
        approve(listed, None, PoolID(DRIVER, POOL), {})
