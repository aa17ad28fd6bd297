"""What a node agent may say, and what of a message is left out by name."""

from __future__ import annotations

import pytest

from contracts.announcing import Refusal
from contracts.device import DeviceTaint
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.names import UNHEALTHY
from publisher.slices import announcement_limits
from publisher.slices.announcement_limits import AnnouncementLimits
from tests import builders
from tests.builders.decisions import CLUSTER

NODE = NodeName("node-1")
LIMITS = AnnouncementLimits(drivers=frozenset({DriverName(builders.DRIVER)}))
OURS = DeviceTaint(key=UNHEALTHY, effect="NoSchedule")
ENDING = DeviceTaint(key=UNHEALTHY, effect="NoExecute")
FOREIGN = DeviceTaint(key="node.kubernetes.io/gone", effect="NoExecute")


def health(*taints: DeviceTaint) -> HealthJudged:
    """Judge one device."""
    pool = builders.pool()
    device = DeviceID(pool.driver, pool.name, DeviceName("d"))
    judged = DeviceHealth(device=device, verdict="Unhealthy", taints=taints)
    return HealthJudged(cluster=CLUSTER, node=NODE, devices=(judged,))


def test_what_is_within_the_limits_stays_as_it_is() -> None:
    """Nothing is said of it."""
    message = DevicesAnnounced(
        cluster=CLUSTER, node=NODE, pools=(builders.pool(*builders.devices(2)),)
    )
    assert LIMITS.limit_inventory(message) == (message, ())
    assert LIMITS.limit_health(health(OURS)) == (health(OURS), ())


def test_pools_of_drivers_that_no_agent_has_are_left_out() -> None:
    """Their own drivers publish them; whoever says nothing of drivers takes all."""
    phantom = builders.pool(*builders.devices(1), driver="gpu.example.org")
    ours = builders.pool(*builders.devices(1))
    message = DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(phantom, ours))
    taken, (refusal,) = LIMITS.limit_inventory(message)
    assert taken.pools == (ours,)
    assert refusal.field == f"pools[gpu.example.org/{phantom.name}]"
    assert "AGENT_DRIVERS" in refusal.reason
    assert AnnouncementLimits().limit_inventory(message) == (message, ())


def test_a_node_has_so_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond is left out, pool by pool; so is what is judged of more."""
    monkeypatch.setattr(announcement_limits, "MAX_NODE_DEVICES", 3)
    first, second = (
        builders.pool(*builders.devices(2), name=name) for name in ("a", "b")
    )
    message = DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(first, second))
    taken, (refusal,) = LIMITS.limit_inventory(message)
    assert taken.pools == (first,)
    assert refusal.reason == "the node has more than 3 devices"
    (judged,) = health(OURS).devices
    many = HealthJudged(cluster=CLUSTER, node=NODE, devices=(judged,) * 9)
    kept, said = LIMITS.limit_health(many)
    assert (len(kept.devices), said) == (3, (Refusal("devices", "more than 3"),))


@pytest.mark.parametrize("where", ["inventory", "health"])
def test_taints_have_our_keys_and_an_effect_that_is_let(where: str) -> None:
    """A foreign key is dropped; what would end pods keeps new ones away."""
    if where == "health":
        taken, refusals = LIMITS.limit_health(health(FOREIGN, ENDING))
        taints = taken.devices[0].taints
    else:
        device = builders.device("d", taints=(FOREIGN, ENDING))
        message = DevicesAnnounced(
            cluster=CLUSTER, node=NODE, pools=(builders.pool(device),)
        )
        announced, refusals = LIMITS.limit_inventory(message)
        taints = announced.pools[0].devices[0].taints
    assert taints == (OURS,)
    assert [refusal.field.rpartition(".")[2] for refusal in refusals] == [
        "key",
        "effect",
    ]
    may = AnnouncementLimits(worst_effect="NoExecute")
    assert may.limit_health(health(ENDING)) == (health(ENDING), ())


def test_of_many_refusals_the_first_are_named() -> None:
    """A line of the log is no place for thousands."""
    _, refusals = LIMITS.limit_health(health(*(FOREIGN,) * 16))
    assert len(refusals) == 6
    assert refusals[-1].reason == "11 more of it are ignored"
