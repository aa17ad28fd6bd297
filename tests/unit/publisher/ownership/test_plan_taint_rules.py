"""Which taint rules keep kube-scheduler from devices that are decided here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from contracts.device import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from contracts.ids import DriverName, NodeName, PoolID, PoolName
from contracts.meta import ObjectMeta
from contracts.validate import validate
from contracts.workload import Node
from publisher.ownership.ownership import Ownership
from publisher.ownership.plan_taint_rules import plan_taint_rules
from publisher.slices.known_slices import ForeignPool
from publisher.steps import Create, Delete, ObjectKey, Step, Update, apply_steps, key_of
from tests import builders

GPU, NIC = DriverName("gpu.nvidia.com"), DriverName("net.example.com")
POOL = PoolID(GPU, PoolName("node-1"))
NODE = NodeName("node-1")
ONE = Ownership.of((GPU,), (), ())
LABELS = {"pool": "training", "zone": "a"}


def node(name: str = NODE, uid: str = "uid-1", **labels: str) -> Node:
    """Make a Node with a uid and labels."""
    return Node(metadata=ObjectMeta(name=name, uid=uid, labels=labels or LABELS))


def seen(*drivers: DriverName, name: str = NODE) -> list[ForeignPool]:
    """Say that these drivers have slices of a pool of this node."""
    return [
        ForeignPool(PoolID(item, PoolName(name)), NodeName(name)) for item in drivers
    ]


def rules(steps: Sequence[Step[DeviceTaintRule]]) -> list[DeviceTaintRule]:
    """Give the rules that are created, as the API server would keep them."""
    made = [step.object for step in steps if isinstance(step, Create)]
    assert len(made) == len(steps)
    assert all(validate(rule) == () for rule in made)
    return [with_time(rule) for rule in made]


def with_time(rule: DeviceTaintRule) -> DeviceTaintRule:
    """Date the taint, as the API server does."""
    taint: DeviceTaint = replace(rule.spec.taint, time_added="2026-11-20T12:00:00Z")
    return replace(rule, spec=replace(rule.spec, taint=taint))


def test_owned_foreign_driver_gets_one_rule_that_selects_it_alone() -> None:
    """And no second one while that holds."""
    (rule,) = rules(plan_taint_rules(ONE, seen(GPU), (), {}, ()))
    assert rule.metadata.name == "moorings-owned-gpu.nvidia.com"
    assert rule.spec.device_selector == DeviceTaintSelector(driver=GPU)
    assert (rule.spec.taint.key, rule.spec.taint.effect) == (
        "moorings.dev/owned",
        "NoSchedule",
    )
    assert plan_taint_rules(ONE, seen(GPU), (), {}, (rule,)) == ()


def test_driver_whose_slices_we_write_needs_no_rule_unless_it_writes_some_too() -> None:
    """Our own slices carry the taint themselves."""
    assert plan_taint_rules(ONE, (), (POOL,), {}, ()) == ()
    elsewhere = seen(GPU, name="node-2")
    assert len(plan_taint_rules(ONE, elsewhere, (POOL,), {}, ())) == 1


def test_named_driver_is_kept_before_it_has_slices_and_while_it_restarts() -> None:
    """There is no moment in which kube-scheduler gets in between."""
    (rule,) = rules(plan_taint_rules(ONE, (), (), {}, ()))
    assert plan_taint_rules(ONE, seen(GPU), (), {}, (rule,)) == ()
    assert plan_taint_rules(ONE, (), (), {}, (rule,)) == ()


def test_rule_goes_when_its_driver_is_not_owned_and_only_if_it_is_ours() -> None:
    """A rule without our label is somebody else's."""
    (rule,) = rules(plan_taint_rules(ONE, seen(GPU), (), {}, ()))
    foreign = replace(rule, metadata=replace(rule.metadata, labels={}))
    other = Ownership.of((NIC,), (), ())
    steps = plan_taint_rules(other, seen(GPU), (), {}, (rule,))
    assert [type(step) for step in steps] == [Create, Delete]
    kept = plan_taint_rules(other, seen(GPU), (), {}, (foreign,))
    assert [type(step) for step in kept] == [Create]


@pytest.mark.parametrize(
    "edit",
    [
        DeviceTaintSelector(),
        None,
        DeviceTaintSelector(driver=GPU, device=builders.device().name),
    ],
)
def test_edited_rule_is_repaired_and_keeps_what_is_not_ours(
    edit: DeviceTaintSelector | None,
) -> None:
    """Labels of others stay."""
    (rule,) = rules(plan_taint_rules(ONE, seen(GPU), (), {}, ()))
    spec: DeviceTaintRuleSpec = replace(rule.spec, device_selector=edit)
    metadata: ObjectMeta = replace(rule.metadata, labels={"team": "a"})
    found = replace(rule, spec=spec, metadata=metadata)
    (step,) = plan_taint_rules(ONE, seen(GPU), (), {}, (found,))
    assert isinstance(step, Update)
    assert step.object.spec == rule.spec
    assert step.object.metadata.labels == {"team": "a", "moorings.dev/owned": "true"}


def test_owned_nodes_get_a_rule_for_each_pool_that_goes_with_the_node() -> None:
    """The rule is owned by the Node, so it goes with it."""
    owned = Ownership.of((), (), ("pool=training",))
    nodes = {NODE: node(), NodeName("node-2"): node("node-2", "uid-2", pool="test")}
    fabric = ForeignPool(PoolID(NIC, PoolName("fabric")))
    pools = [*seen(GPU, NIC), *seen(GPU, name="node-2"), fabric]
    made = rules(plan_taint_rules(owned, pools, (), nodes, ()))
    selectors = {rule.spec.device_selector for rule in made}
    assert selectors == {
        DeviceTaintSelector(driver=driver, pool=PoolName("node-1"))
        for driver in (GPU, NIC)
    }
    assert {owner.uid for rule in made for owner in rule.metadata.owner_references} == {
        "uid-1"
    }
    assert plan_taint_rules(owned, (), (), nodes, made) == ()
    relabelled = {NODE: node(pool="test")}
    gone = plan_taint_rules(owned, seen(GPU, NIC), (), relabelled, made)
    assert gone == tuple(map(Delete, made))


def test_rules_of_drivers_become_rules_of_pools_without_a_gap() -> None:
    """New rules are made before old ones go."""
    before = rules(plan_taint_rules(ONE, seen(GPU), (), {}, ()))
    owned = Ownership.of((), (), ("pool=training",))
    steps = plan_taint_rules(owned, seen(GPU), (), {NODE: node()}, before)
    assert [type(step) for step in steps] == [Create, Delete]
    there = apply_steps({key_of(rule): rule for rule in before}, steps)
    assert isinstance(next(iter(there)), ObjectKey)
    assert plan_taint_rules(owned, seen(GPU), (), {NODE: node()}, there.values()) == ()
