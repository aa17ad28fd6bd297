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
from nodeagent.health import HealthPolicy, HealthStatus, Moment, Reading, Symptom
from nodeagent.inventory import NodeDevices
from tests.builders import devices

CLUSTER, NODE, OTHER = ClusterName("c"), NodeName("n"), NodeName("m")
POLICY = HealthPolicy(bad_readings=1, unknown_after_s=0.0)
DEVICE = DeviceID(DriverName("d.io"), PoolName("n"), DeviceName("gpu-0"))
BAD = {NODE: (Reading(DEVICE, Symptom.BAD, "broken"),)}


def agent_state(*nodes: NodeName) -> AgentState:
    return AgentState(CLUSTER, nodes or (NODE,), POLICY)


def announced_state() -> AgentState:
    """Make a state whose one node has been announced."""
    agent = agent_state()
    agent.take_dirty(9)
    agent.make_inventory(node_devices(2), EVERYTHING)
    agent.make_health(NODE, EVERYTHING)
    return agent


def node_devices(count: int) -> NodeDevices:
    content = ResourcePool(
        driver=DEVICE.driver, name=DEVICE.pool, devices=devices(count)
    )
    return NodeDevices(node=NODE, pools=(content,))


def moment(second: float) -> Moment:
    return Moment(second, "2026-01-01T00:00:00Z")


def test_at_first_every_node_is_dirty() -> None:
    """An agent that starts says everything of every node once."""
    assert agent_state(NODE, OTHER).take_dirty(9) == {
        NODE: EVERYTHING,
        OTHER: EVERYTHING,
    }


def test_dirty_nodes_come_in_turn_and_once() -> None:
    """Whoever waits longest comes first, and nobody is taken twice."""
    agent = agent_state(NODE, OTHER)
    assert list(agent.take_dirty(1)) == [NODE]
    agent.mark_dirty(NODE, HEALTH)
    assert list(agent.take_dirty(9)) == [OTHER, NODE]
    assert agent.dirty_count == 0


def test_what_was_sent_is_not_sent_again() -> None:
    """Equal content is not sent while nothing must be repeated."""
    agent = announced_state()
    assert agent.make_inventory(node_devices(2), DEVICES) is None
    assert agent.make_health(NODE, HEALTH) is None


def test_what_must_be_repeated_is_sent_again_but_is_not_changed() -> None:
    """A repetition is sent whole, and counts as no change."""
    agent = announced_state()
    inventory, health = (
        agent.make_inventory(node_devices(2), RESEND),
        agent.make_health(NODE, RESEND),
    )
    assert inventory is not None
    assert health is not None
    assert not inventory.is_changed
    assert not health.is_changed


def test_a_change_of_health_is_dirty_and_changed() -> None:
    """Only the health of that node is sent, with the one device."""
    agent = announced_state()
    agent.judge_readings(BAD, moment(1))
    assert agent.take_dirty(9) == {NODE: HEALTH}
    sent = agent.make_health(NODE, HEALTH)
    assert sent is not None
    assert sent.is_changed
    assert [device_health.device for device_health in sent.message.devices] == [DEVICE]


def test_a_failed_announcement_uses_its_generation_up() -> None:
    """The bus may have stored it: other content must not get the same number."""
    agent = announced_state()
    lost = agent.make_inventory(node_devices(3), DEVICES)
    later = agent.make_inventory(node_devices(4), RESEND)
    assert lost is not None
    assert later is not None
    assert lost.message.pools[0].generation == 2
    assert later.message.pools[0].generation == 3


def test_a_removed_device_takes_its_taint_along() -> None:
    """Health speaks of no device that the inventory does not have."""
    agent = announced_state()
    agent.judge_readings(BAD, moment(1))
    agent.make_health(NODE, HEALTH)
    agent.make_inventory(node_devices(0), DEVICES)
    sent = agent.make_health(NODE, DEVICES)
    assert sent is not None
    assert sent.message.devices == ()


def test_a_source_that_fails_makes_all_its_devices_unknown() -> None:
    """What cannot be read is not healthy, and not unhealthy either."""
    agent = announced_state()
    changes = agent.judge_silence(moment(1), "the source is stuck")
    assert [change.after.value for change in changes] == ["Unknown", "Unknown"]


def test_after_a_restart_nothing_is_sent_that_was_sent() -> None:
    """What the bus still holds is restored and not sent once more."""
    before = announced_state()
    before.judge_readings(BAD, moment(1))
    inventory = before.make_inventory(node_devices(2), RESEND)
    health = before.make_health(NODE, RESEND)
    assert inventory is not None
    assert health is not None

    after = agent_state()
    after.restore_inventory(inventory.message)
    after.restore_health(health.message)
    assert after.make_inventory(node_devices(2), EVERYTHING) is None
    assert after.make_health(NODE, EVERYTHING) is None


def test_what_is_read_now_wins_over_what_was_sent() -> None:
    """A reading after the start is newer than any message before it."""
    before = announced_state()
    sent = before.make_health(NODE, RESEND)
    assert sent is not None
    after = agent_state()
    after.judge_readings(BAD, moment(1))
    after.restore_health(sent.message)
    now = after.make_health(NODE, EVERYTHING)
    assert now is not None
    (device_health,) = now.message.devices
    assert device_health.verdict == "Unhealthy"


def test_messages_about_others_are_not_restored() -> None:
    """An agent takes nothing from what is said of nodes that are not its own."""
    agent, stranger = agent_state(OTHER), announced_state()
    sent = stranger.make_inventory(node_devices(2), RESEND)
    assert sent is not None
    agent.restore_inventory(sent.message)
    assert list(agent.take_dirty(9)) == [OTHER]


def test_devices_are_counted_by_driver_and_health() -> None:
    agent = announced_state()
    driver = DEVICE.driver
    assert agent.count_devices() == {(driver, HealthStatus.HEALTHY): 2}
    agent.judge_readings(BAD, Moment(1.0, "now"))
    assert agent.count_devices() == {
        (driver, HealthStatus.HEALTHY): 1,
        (driver, HealthStatus.UNHEALTHY): 1,
    }


def followed_state(policy: HealthPolicy) -> AgentState:
    """Make a state whose node's verdicts kubelet is told; nothing was announced."""
    agent = AgentState(CLUSTER, (NODE,), policy)
    agent.follow_verdicts(NODE, node_devices(2).device_ids)
    return agent


def verdicts(agent: AgentState) -> list[HealthStatus]:
    devices = agent.list_devices(NODE)
    return [agent.find_verdict(NODE, device)[0] for device in devices]


def test_a_device_is_unknown_before_its_first_verdict() -> None:
    """Also while it was not read, and while bad readings do not prove enough."""
    agent = followed_state(HealthPolicy(bad_readings=3))
    unknown, healthy = HealthStatus.UNKNOWN, HealthStatus.HEALTHY
    assert verdicts(agent) == [unknown, unknown]
    assert agent.count_devices() == {(DEVICE.driver, unknown): 2}
    agent.judge_readings({}, moment(1.0), frozenset(agent.list_devices(NODE)))
    assert verdicts(agent) == [unknown, unknown]
    agent.judge_readings(BAD, moment(2.0))
    assert verdicts(agent) == [unknown, healthy]
    agent.judge_readings(BAD, moment(3.0))
    agent.judge_readings(BAD, moment(4.0))
    assert verdicts(agent) == [HealthStatus.UNHEALTHY, healthy]


def test_a_device_that_was_judged_stays_so_until_readings_prove_otherwise() -> None:
    agent = followed_state(HealthPolicy(bad_readings=2))
    agent.judge_readings({}, moment(1.0))
    agent.judge_readings(BAD, moment(2.0))
    assert verdicts(agent) == [HealthStatus.HEALTHY, HealthStatus.HEALTHY]
    agent.make_inventory(node_devices(3), EVERYTHING)
    assert verdicts(agent)[2] is HealthStatus.UNKNOWN


def test_what_was_told_before_a_restart_is_a_verdict() -> None:
    before, after = announced_state(), followed_state(POLICY)
    before.judge_readings(BAD, moment(1.0))
    sent = before.make_health(NODE, HEALTH)
    assert sent is not None
    after.restore_health(sent.message)
    assert verdicts(after) == [HealthStatus.UNHEALTHY, HealthStatus.UNKNOWN]


def test_drift_is_said_once_and_only_of_nodes_where_somebody_looks() -> None:
    """An empty answer is one, too: what was said before a restart is over."""
    state = agent_state()
    node = NODE
    state.take_dirty(10)
    assert state.make_drift(node, RESEND) is None
    state.note_drift(node, ())
    (dirty,) = state.take_dirty(10).values()
    empty = state.make_drift(node, dirty)
    assert empty is not None
    assert empty.devices == ()
    state.note_drift(node, ())
    assert state.dirty_count == 0
    assert state.make_drift(node, HEALTH) is None
    assert state.make_drift(node, RESEND) == empty
