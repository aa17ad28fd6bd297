"""Which taint rules tell kube-scheduler of foreign devices that are not healthy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from contracts.device import DeviceTaint, DeviceTaintRule, DeviceTaintSelector
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolID, PoolName
from contracts.messages import DeviceHealth
from contracts.meta import ObjectMeta
from contracts.names import UNHEALTHY
from contracts.validate import validate
from contracts.workload import Node
from publisher.ownership.plan_health_rules import MAX_NODE_RULES, plan_health_rules
from publisher.slices.known_slices import ForeignPool
from publisher.steps import Create, Delete, Step, Update

GPU = DriverName("gpu.nvidia.com")
NODE, OTHER = NodeName("node-1"), NodeName("node-2")
POOL = PoolID(GPU, PoolName(NODE))
FOREIGN = (ForeignPool(POOL, NODE),)
NODES = {
    name: Node(metadata=ObjectMeta(name=name, uid=f"uid-{name}"))
    for name in (NODE, OTHER)
}

Judged = tuple[NodeName, DeviceHealth]


def sick(
    name: str = "gpu-0", effect: str = "NoSchedule", by: NodeName = NODE
) -> Judged:
    """Have the agent of a node judge a device of the pool."""
    taint = DeviceTaint(key=UNHEALTHY, value="Unhealthy", effect=effect)
    device = DeviceID(POOL.driver, POOL.pool, DeviceName(name))
    return by, DeviceHealth(device=device, verdict="Unhealthy", taints=(taint,))


def plan(
    *judged: Judged,
    foreign: Sequence[ForeignPool] = FOREIGN,
    announced: Sequence[PoolID] = (),
    observed: Sequence[DeviceTaintRule] = (),
) -> tuple[Step[DeviceTaintRule], ...]:
    """Plan on two nodes, the first with the pool of a foreign driver."""
    return plan_health_rules(judged, foreign, announced, NODES, observed)


def made(*judged: Judged) -> list[DeviceTaintRule]:
    """Give the rules that are created."""
    steps = plan(*judged)
    rules = [step.object for step in steps if isinstance(step, Create)]
    assert len(rules) == len(steps)
    assert all(validate(rule) == () for rule in rules)
    return rules


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_sick_foreign_device_gets_one_rule_that_ends_no_pod(effect: str) -> None:
    """It selects that device alone, and goes with its Node."""
    (rule,) = made(sick(effect=effect))
    device = DeviceTaintSelector(driver=GPU, pool=POOL.pool, device=DeviceName("gpu-0"))
    assert rule.metadata.name.startswith("moorings-health-gpu.nvidia.com-")
    assert rule.spec.device_selector == device
    taint = rule.spec.taint
    assert (taint.key, taint.value, taint.effect) == (
        "moorings.dev/unhealthy",
        "Unhealthy",
        "NoSchedule",
    )
    (owner,) = rule.metadata.owner_references
    assert (owner.kind, owner.uid) == ("Node", "uid-node-1")
    assert plan(sick(effect=effect), observed=[rule]) == ()


def test_the_rule_goes_with_the_verdict_and_only_if_it_is_ours() -> None:
    """A rule without our label is somebody else's."""
    (rule,) = made(sick())
    assert plan(observed=[rule]) == (Delete(rule),)
    theirs = replace(rule, metadata=replace(rule.metadata, labels={}))
    assert plan(observed=[theirs]) == ()


def test_an_edited_rule_is_repaired() -> None:
    """Whoever lets it evict."""
    (rule,) = made(sick())
    taint = replace(rule.spec.taint, effect="NoExecute")
    edited = replace(rule, spec=replace(rule.spec, taint=taint))
    (step,) = plan(sick(), observed=[edited])
    assert isinstance(step, Update)
    assert step.object == rule


@pytest.mark.parametrize(
    ("judged", "foreign", "announced"),
    [
        (sick(by=OTHER), FOREIGN, ()),
        (sick(), (), ()),
        (sick(), [ForeignPool(POOL)], ()),
        (sick(), FOREIGN, [POOL]),
        (sick(effect="None"), FOREIGN, ()),
        (sick(by=NodeName("node-3")), [ForeignPool(POOL, NodeName("node-3"))], ()),
    ],
    ids=["other-node", "no-slices", "no-node", "announced", "no-effect", "no-Node"],
)
def test_what_gets_no_rule(
    judged: Judged, foreign: Sequence[ForeignPool], announced: Sequence[PoolID]
) -> None:
    """Only the node of a foreign pool speaks for it, of devices that are there."""
    assert plan(judged, foreign=foreign, announced=announced) == ()


def test_the_rule_stays_while_the_driver_restarts() -> None:
    """It has no slices then; what it publishes next is tainted from the start."""
    (rule,) = made(sick())
    assert plan(sick(), foreign=(), observed=[rule]) == ()


def test_one_node_makes_so_many_rules_and_no_more() -> None:
    """And is in no other node's way."""
    pool = PoolID(GPU, PoolName(OTHER))
    device = DeviceID(GPU, pool.pool, DeviceName("gpu-0"))
    other = OTHER, replace(sick()[1], device=device)
    many = [sick(f"gpu-{index}") for index in range(MAX_NODE_RULES + 1)]
    steps = plan(*many, other, foreign=[*FOREIGN, ForeignPool(pool, OTHER)])
    assert len(steps) == MAX_NODE_RULES + 1
