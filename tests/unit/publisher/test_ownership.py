"""Whose devices are, and how kube-scheduler and the solver hear of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from contracts.device import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourceSlice,
)
from contracts.ids import (
    DeviceClassName,
    DeviceID,
    DeviceName,
    DriverName,
    NodeName,
    PoolID,
    PoolName,
)
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DeviceHealth
from contracts.meta import ObjectMeta
from contracts.names import UNHEALTHY
from contracts.validate import validate
from contracts.workload import Node
from publisher.kube.changes import Change, ChangePage
from publisher.ownership.ownership import Ownership
from publisher.ownership.plan_taint_rules import (
    MAX_NODE_RULES,
    plan_health_rules,
    plan_taint_rules,
)
from publisher.ownership.state_filter import StateFilter
from publisher.slices.known_slices import ForeignPool
from publisher.slices.layout import OWNED_TAINT, lay_out
from publisher.slices.plan_slices import plan_slices
from publisher.steps import Create, Delete, ObjectKey, Step, Update, apply_steps, key_of
from tests import builders

GPU, NIC = DriverName("gpu.nvidia.com"), DriverName("net.example.com")
POOL = PoolID(GPU, PoolName("node-1"))
NODE = NodeName("node-1")
OWNED = Ownership.of((GPU,), (), ())
LABELS = {"pool": "training", "zone": "a"}


def test_nothing_named_means_everything_is_decided_here() -> None:
    """Ownership is taken away only by naming what is owned."""
    spec = builders.resource_slice().spec
    everything = Ownership()
    assert everything.owns_driver(GPU)
    assert everything.owns_class(DeviceClassName("gpu"))
    assert everything.owns_node({})
    assert everything.owns_slice(spec, None)
    assert everything.owns_claim(builders.claim().spec)


def test_claim_without_any_owned_class_is_left_alone() -> None:
    """One owned class makes a claim ours, none does not."""
    owned = Ownership.of((), ("gpu",), ())
    gpu, nic = (builders.request(name, device_class=name) for name in ("gpu", "nic"))
    assert owned.owns_claim(builders.claim(gpu, nic).spec)
    assert not owned.owns_claim(builders.claim(nic).spec)


@pytest.mark.parametrize(
    ("owned", "taints"),
    [
        (Ownership(), False),
        (Ownership.of((), ("gpu",), ()), False),
        (Ownership.of((GPU,), ("gpu",), ()), True),
        (Ownership.of((NIC,), (), ()), False),
        (Ownership.of((), ("gpu",), ("pool=training",)), True),
        (Ownership.of((NIC,), (), ("pool=training",)), False),
    ],
)
def test_only_what_is_named_is_kept_from_kube_scheduler(
    owned: Ownership, taints: bool
) -> None:
    """Whoever names nothing keeps nobody out."""
    assert owned.taints_driver(GPU) is taints


@pytest.mark.parametrize(
    ("spec", "labels", "is_owned"),
    [
        ({}, LABELS, True),
        ({}, {"pool": "training"}, False),
        ({}, None, False),
        ({"all_nodes": True}, None, False),
        ({"driver": NIC}, LABELS, False),
    ],
)
def test_slice_is_owned_with_its_driver_and_its_one_node(
    spec: dict[str, object], labels: dict[str, str] | None, is_owned: bool
) -> None:
    """Both must be owned; a slice of no one node has no labels."""
    owned = Ownership.of((GPU,), (), ("pool=training", "zone=a"))
    made = builders.resource_slice(**{"driver": GPU, **spec})  # type: ignore[arg-type] # fields of the builder
    assert owned.owns_slice(made.spec, labels) is is_owned


DRIVER, NET = "gpu.nvidia.com", "net.example.com"
THEIRS = builders.resource_slice(driver=DRIVER)
TRAINING = ("pool=training",)


def change(item: ResourceSlice | DeviceTaintRule) -> Change:
    return Change(type(item).__name__, item.metadata.name, to_kubernetes(item))


def node_change(**labels: str) -> Change:
    raw = {"kind": "Node", "metadata": {"name": builders.NODE, "labels": labels}}
    return Change("Node", builders.NODE, raw)


def offered(known: StateFilter, *changes: Change) -> list[tuple[str, Any]]:
    """Say which keys are told, and whether as gone."""
    page = known.of(ChangePage(changes, synced=True))
    assert page.synced
    return [(item.key, item.object is not None) for item in page.changes]


def test_our_slices_and_rules_are_not_told() -> None:
    """The solver hears of announced pools by the agents themselves."""
    known = StateFilter(Ownership())
    wanted = lay_out(builders.pool(), NodeName("node-1"), {}, owned=True)
    (step,) = plan_slices(wanted, (), now="now")
    name = step.object.metadata.name
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name="r"), spec=DeviceTaintRuleSpec(taint=OWNED_TAINT)
    )
    hot = DeviceTaintRule(
        metadata=ObjectMeta(name="h"), spec=DeviceTaintRuleSpec(taint=builders.taint())
    )
    labels = {UNHEALTHY: "true"}
    sick = replace(hot, metadata=ObjectMeta(name="moorings-health-x", labels=labels))
    alike = replace(hot, metadata=ObjectMeta(name="moorings-health-y"))
    mine, theirs = change(step.object), change(THEIRS)
    told = offered(known, mine, theirs, *map(change, (rule, hot, sick, alike)))
    assert told == [
        (name, False),
        (THEIRS.metadata.name, True),
        ("r", False),
        ("h", True),
        ("moorings-health-x", False),
        ("moorings-health-y", True),
    ]


def test_slices_of_drivers_that_are_not_owned_are_not_told() -> None:
    """They are told as gone, whatever they hold."""
    known = StateFilter(Ownership.of((NET,), (), ()))
    other = builders.resource_slice(driver=NET)
    told = offered(known, change(THEIRS), change(other))
    assert told == [(THEIRS.metadata.name, False), (other.metadata.name, True)]


def test_slices_are_told_again_when_their_node_changes_hands() -> None:
    """Ownership by labels of nodes reaches their slices."""
    known, name = StateFilter(Ownership.of((), (), TRAINING)), THEIRS.metadata.name
    assert offered(known, change(THEIRS)) == [(name, False)]
    assert offered(known, node_change(pool="training")) == [
        ("node-1", True),
        (name, True),
    ]
    assert offered(known, node_change(pool="training", a="b"))[1:] == [(name, True)]
    assert offered(known, node_change(pool="test"))[1:] == [(name, False)]
    assert offered(known, node_change(pool="training"))[1:] == [(name, True)]
    assert offered(known, Change("Node", "node-1", None))[1:] == [(name, False)]
    gone = Change("ResourceSlice", name, None)
    assert offered(known, gone) == [(name, False)]
    assert offered(known, node_change(pool="training")) == [("node-1", True)]


def test_devices_of_no_one_node_are_owned_only_where_all_nodes_are() -> None:
    """Nobody owns a part of a fabric."""
    fabric = change(builders.resource_slice(all_nodes=True))
    assert offered(StateFilter(Ownership()), fabric)[0][1]
    assert not offered(StateFilter(Ownership.of((), (), TRAINING)), fabric)[0][1]


def test_devices_of_others_are_counted_while_they_are_there() -> None:
    """Our own slices are not others', and what is ours to give is not either."""
    theirs = builders.resource_slice(*builders.devices(3), driver=NET)
    known = StateFilter(Ownership.of((DRIVER,), (), ()))
    offered(known, change(THEIRS), change(theirs))
    assert +known.foreign_devices == {NET: 3}
    offered(known, change(theirs))
    assert +known.foreign_devices == {NET: 3}
    offered(known, replace_object(change(theirs)))
    assert not +known.foreign_devices


def replace_object(gone: Change) -> Change:
    return Change(gone.kind, gone.key, None)


ONE, TWO = NodeName("node-1"), NodeName("node-2")
FOREIGN = (ForeignPool(POOL, ONE),)
NODES = {
    name: Node(metadata=ObjectMeta(name=name, uid=f"uid-{name}")) for name in (ONE, TWO)
}

Judged = tuple[NodeName, DeviceHealth]


def sick(name: str = "gpu-0", effect: str = "NoSchedule", by: NodeName = ONE) -> Judged:
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
        (sick(by=TWO), FOREIGN, ()),
        (sick(), (), ()),
        (sick(), [ForeignPool(POOL)], ()),
        (sick(), (), [POOL]),
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


def test_whoever_announces_a_foreign_pool_takes_no_rule_away() -> None:
    """Its slices are its driver's, so ours are not there to carry the taint."""
    assert plan(sick(), announced=[POOL]) == plan(sick())


def test_the_rule_stays_while_the_driver_restarts() -> None:
    """It has no slices then; what it publishes next is tainted from the start."""
    (rule,) = made(sick())
    assert plan(sick(), foreign=(), observed=[rule]) == ()


def test_one_node_makes_so_many_rules_and_no_more() -> None:
    """And is in no other node's way."""
    pool = PoolID(GPU, PoolName(TWO))
    device = DeviceID(GPU, pool.pool, DeviceName("gpu-0"))
    other = TWO, replace(sick()[1], device=device)
    many = [sick(f"gpu-{index}") for index in range(MAX_NODE_RULES + 1)]
    steps = plan(*many, other, foreign=[*FOREIGN, ForeignPool(pool, TWO)])
    assert len(steps) == MAX_NODE_RULES + 1


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
    (rule,) = rules(plan_taint_rules(OWNED, seen(GPU), (), {}, ()))
    assert rule.metadata.name == "moorings-owned-gpu.nvidia.com"
    assert rule.spec.device_selector == DeviceTaintSelector(driver=GPU)
    assert (rule.spec.taint.key, rule.spec.taint.effect) == (
        "moorings.dev/owned",
        "NoSchedule",
    )
    assert plan_taint_rules(OWNED, seen(GPU), (), {}, (rule,)) == ()


def test_driver_whose_slices_we_write_needs_no_rule_unless_it_writes_some_too() -> None:
    """Our own slices carry the taint themselves."""
    assert plan_taint_rules(OWNED, (), (POOL,), {}, ()) == ()
    elsewhere = seen(GPU, name="node-2")
    assert len(plan_taint_rules(OWNED, elsewhere, (POOL,), {}, ())) == 1


def test_named_driver_is_kept_before_it_has_slices_and_while_it_restarts() -> None:
    """There is no moment in which kube-scheduler gets in between."""
    (rule,) = rules(plan_taint_rules(OWNED, (), (), {}, ()))
    assert plan_taint_rules(OWNED, seen(GPU), (), {}, (rule,)) == ()
    assert plan_taint_rules(OWNED, (), (), {}, (rule,)) == ()


def test_rule_goes_when_its_driver_is_not_owned_and_only_if_it_is_ours() -> None:
    """A rule without our label is somebody else's."""
    (rule,) = rules(plan_taint_rules(OWNED, seen(GPU), (), {}, ()))
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
    (rule,) = rules(plan_taint_rules(OWNED, seen(GPU), (), {}, ()))
    spec: DeviceTaintRuleSpec = replace(rule.spec, device_selector=edit)
    metadata: ObjectMeta = replace(rule.metadata, labels={"team": "a"})
    found = replace(rule, spec=spec, metadata=metadata)
    (step,) = plan_taint_rules(OWNED, seen(GPU), (), {}, (found,))
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
    before = rules(plan_taint_rules(OWNED, seen(GPU), (), {}, ()))
    owned = Ownership.of((), (), ("pool=training",))
    steps = plan_taint_rules(owned, seen(GPU), (), {NODE: node()}, before)
    assert [type(step) for step in steps] == [Create, Delete]
    there = apply_steps({key_of(rule): rule for rule in before}, steps)
    assert isinstance(next(iter(there)), ObjectKey)
    assert plan_taint_rules(owned, seen(GPU), (), {NODE: node()}, there.values()) == ()
