"""What must be sent, whatever happens in which order."""

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
from nodeagent.agent_state import DEVICES, EVERYTHING, HEALTH, RESEND, AgentState
from nodeagent.health import HealthPolicy, Moment, Reading, Symptom
from nodeagent.inventory import NodeDevices
from tests.builders import devices

CLUSTER, NODE, OTHER = ClusterName("c"), NodeName("n"), NodeName("m")
POLICY = HealthPolicy(bad_readings=1, unknown_after_s=0.0)
DEVICE = DeviceID(DriverName("d.io"), PoolName("n"), DeviceName("gpu-0"))
BAD = {NODE: (Reading(DEVICE, Symptom.BAD, "broken"),)}


def state(*nodes: NodeName) -> AgentState:
    return AgentState(CLUSTER, nodes or (NODE,), POLICY)


def settled() -> AgentState:
    """Make a state whose one node has been announced."""
    made = state()
    made.take_dirty(9)
    made.make_inventory(found(2), EVERYTHING)
    made.make_health(NODE, EVERYTHING)
    return made


def found(count: int) -> NodeDevices:
    content = ResourcePool(
        driver=DEVICE.driver, name=DEVICE.pool, devices=devices(count)
    )
    return NodeDevices(node=NODE, pools=(content,))


def moment(second: float) -> Moment:
    return Moment(second, "2026-01-01T00:00:00Z")


def test_at_first_every_node_is_due() -> None:
    assert state(NODE, OTHER).take_dirty(9) == {NODE: EVERYTHING, OTHER: EVERYTHING}


def test_due_nodes_come_in_turn_and_once() -> None:
    made = state(NODE, OTHER)
    assert list(made.take_dirty(1)) == [NODE]
    made.mark_dirty(NODE, HEALTH)
    assert list(made.take_dirty(9)) == [OTHER, NODE]
    assert made.dirty_count == 0


def test_what_was_said_is_not_said_again() -> None:
    made = settled()
    assert made.make_inventory(found(2), DEVICES) is None
    assert made.make_health(NODE, HEALTH) is None


def test_what_must_be_repeated_is_said_again_but_is_no_news() -> None:
    made = settled()
    inventory, health = (
        made.make_inventory(found(2), RESEND),
        made.make_health(NODE, RESEND),
    )
    assert inventory is not None
    assert health is not None
    assert not inventory.is_changed
    assert not health.is_changed


def test_a_change_of_health_is_due_and_new() -> None:
    made = settled()
    made.judge_readings(BAD, moment(1))
    assert made.take_dirty(9) == {NODE: HEALTH}
    said = made.make_health(NODE, HEALTH)
    assert said is not None
    assert said.is_changed
    assert [item.device for item in said.message.devices] == [DEVICE]


def test_a_failed_announcement_uses_its_generation_up() -> None:
    """The bus may have stored it: other content must not get the same number."""
    made = settled()
    lost = made.make_inventory(found(3), DEVICES)
    later = made.make_inventory(found(4), RESEND)
    assert lost is not None
    assert later is not None
    assert lost.message.pools[0].generation == 2
    assert later.message.pools[0].generation == 3


def test_a_removed_device_takes_its_taint_along() -> None:
    made = settled()
    made.judge_readings(BAD, moment(1))
    made.make_health(NODE, HEALTH)
    made.make_inventory(found(0), DEVICES)
    said = made.make_health(NODE, DEVICES)
    assert said is not None
    assert said.message.devices == ()


def test_a_source_that_fails_makes_all_its_devices_unknown() -> None:
    made = settled()
    changes = made.judge_silence(moment(1), "the source is stuck")
    assert [change.after.value for change in changes] == ["Unknown", "Unknown"]


def test_after_a_restart_nothing_is_said_that_was_said() -> None:
    before = settled()
    before.judge_readings(BAD, moment(1))
    inventory = before.make_inventory(found(2), RESEND)
    health = before.make_health(NODE, RESEND)
    assert inventory is not None
    assert health is not None

    after = state()
    after.restore_inventory(inventory.message)
    after.restore_health(health.message)
    assert after.make_inventory(found(2), EVERYTHING) is None
    assert after.make_health(NODE, EVERYTHING) is None


def test_what_is_seen_now_wins_over_what_was_said() -> None:
    before = settled()
    said = before.make_health(NODE, RESEND)
    assert said is not None
    after = state()
    after.judge_readings(BAD, moment(1))
    after.restore_health(said.message)
    now = after.make_health(NODE, EVERYTHING)
    assert now is not None
    assert [item.verdict for item in now.message.devices] == ["Unhealthy"]


def test_messages_about_others_are_not_believed() -> None:
    made, stranger = state(OTHER), settled()
    said = stranger.make_inventory(found(2), RESEND)
    assert said is not None
    made.restore_inventory(said.message)
    assert list(made.take_dirty(9)) == [OTHER]
