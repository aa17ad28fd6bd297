"""What is due to be said, whatever happens in which order."""

from __future__ import annotations

from contracts.device import ResourcePool
from contracts.ids import (
    ClusterName,
    DeviceID,
    DeviceName,
    DriverName,
    NodeName,
    PoolName,
)
from nodeagent.agent_state import AGAIN, ALL, DEVICES, HEALTH, Book
from nodeagent.health import HealthPolicy, Moment, Reading, Symptom
from nodeagent.inventory import NodeDevices
from tests.builders import devices

CLUSTER, NODE, OTHER = ClusterName("c"), NodeName("n"), NodeName("m")
POLICY = HealthPolicy(bad_readings=1, unknown_after_s=0.0)
DEVICE = DeviceID(DriverName("d.io"), PoolName("n"), DeviceName("gpu-0"))
BAD = {NODE: (Reading(DEVICE, Symptom.BAD, "broken"),)}


def book(*nodes: NodeName) -> Book:
    return Book(CLUSTER, nodes or (NODE,), POLICY)


def settled() -> Book:
    """Make a book whose one node has been announced."""
    made = book()
    made.take_due(9)
    made.next_inventory(found(2), ALL)
    made.next_health(NODE, ALL)
    return made


def found(count: int) -> NodeDevices:
    content = ResourcePool(
        driver=DEVICE.driver, name=DEVICE.pool, devices=devices(count)
    )
    return NodeDevices(node=NODE, pools=(content,))


def moment(second: float) -> Moment:
    return Moment(second, "2026-01-01T00:00:00Z")


def test_at_first_every_node_is_due() -> None:
    assert book(NODE, OTHER).take_due(9) == {NODE: ALL, OTHER: ALL}


def test_due_nodes_come_in_turn_and_once() -> None:
    made = book(NODE, OTHER)
    assert list(made.take_due(1)) == [NODE]
    made.make_due(NODE, HEALTH)
    assert list(made.take_due(9)) == [OTHER, NODE]
    assert made.due_count == 0


def test_what_was_said_is_not_said_again() -> None:
    made = settled()
    assert made.next_inventory(found(2), DEVICES) is None
    assert made.next_health(NODE, HEALTH) is None


def test_what_must_be_repeated_is_said_again_but_is_no_news() -> None:
    made = settled()
    inventory, health = (
        made.next_inventory(found(2), AGAIN),
        made.next_health(NODE, AGAIN),
    )
    assert inventory is not None
    assert health is not None
    assert not inventory.news
    assert not health.news


def test_a_change_of_health_is_due_and_new() -> None:
    made = settled()
    made.look(BAD, moment(1))
    assert made.take_due(9) == {NODE: HEALTH}
    said = made.next_health(NODE, HEALTH)
    assert said is not None
    assert said.news
    assert [item.device for item in said.message.devices] == [DEVICE]


def test_a_failed_announcement_uses_its_generation_up() -> None:
    """The bus may have stored it: other content must not get the same number."""
    made = settled()
    lost = made.next_inventory(found(3), DEVICES)
    later = made.next_inventory(found(4), AGAIN)
    assert lost is not None
    assert later is not None
    assert lost.message.pools[0].generation == 2
    assert later.message.pools[0].generation == 3


def test_a_removed_device_takes_its_taint_along() -> None:
    made = settled()
    made.look(BAD, moment(1))
    made.next_health(NODE, HEALTH)
    made.next_inventory(found(0), DEVICES)
    said = made.next_health(NODE, DEVICES)
    assert said is not None
    assert said.message.devices == ()


def test_a_source_that_fails_makes_all_its_devices_unknown() -> None:
    made = settled()
    changes = made.silence(moment(1), "the source is stuck")
    assert [change.after.value for change in changes] == ["Unknown", "Unknown"]


def test_after_a_restart_nothing_is_said_that_was_said() -> None:
    before = settled()
    before.look(BAD, moment(1))
    inventory = before.next_inventory(found(2), AGAIN)
    health = before.next_health(NODE, AGAIN)
    assert inventory is not None
    assert health is not None

    after = book()
    after.recall_inventory(inventory.message)
    after.recall_health(health.message)
    assert after.next_inventory(found(2), ALL) is None
    assert after.next_health(NODE, ALL) is None


def test_what_is_seen_now_wins_over_what_was_said() -> None:
    before = settled()
    said = before.next_health(NODE, AGAIN)
    assert said is not None
    after = book()
    after.look(BAD, moment(1))
    after.recall_health(said.message)
    now = after.next_health(NODE, ALL)
    assert now is not None
    assert [item.verdict for item in now.message.devices] == ["Unhealthy"]


def test_messages_about_others_are_not_believed() -> None:
    made, stranger = book(OTHER), settled()
    said = stranger.next_inventory(found(2), AGAIN)
    assert said is not None
    made.recall_inventory(said.message)
    assert list(made.take_due(9)) == [OTHER]
