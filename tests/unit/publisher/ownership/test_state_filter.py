"""The solver hears of what is its to give, and of nothing that it knows otherwise."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.device import DeviceTaintRule, DeviceTaintRuleSpec, ResourceSlice
from contracts.ids import NodeName
from contracts.kubernetes.decode import to_kubernetes
from contracts.meta import ObjectMeta
from contracts.names import UNHEALTHY
from publisher.kube.changes import Change, ChangePage
from publisher.ownership.ownership import Ownership
from publisher.ownership.state_filter import StateFilter
from publisher.slices.layout import OWNED_TAINT, lay_out
from publisher.slices.plan_slices import plan_slices
from tests import builders

DRIVER, OTHER = "gpu.nvidia.com", "net.example.com"
THEIRS = builders.resource_slice(driver=DRIVER)
TRAINING = ("pool=training",)


def change(item: ResourceSlice | DeviceTaintRule) -> Change:
    return Change(type(item).__name__, item.metadata.name, to_kubernetes(item))


def node(**labels: str) -> Change:
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
    known = StateFilter(Ownership.of((OTHER,), (), ()))
    other = builders.resource_slice(driver=OTHER)
    told = offered(known, change(THEIRS), change(other))
    assert told == [(THEIRS.metadata.name, False), (other.metadata.name, True)]


def test_slices_are_told_again_when_their_node_changes_hands() -> None:
    """Ownership by labels of nodes reaches their slices."""
    known, name = StateFilter(Ownership.of((), (), TRAINING)), THEIRS.metadata.name
    assert offered(known, change(THEIRS)) == [(name, False)]
    assert offered(known, node(pool="training")) == [("node-1", True), (name, True)]
    assert offered(known, node(pool="training", a="b"))[1:] == [(name, True)]
    assert offered(known, node(pool="test"))[1:] == [(name, False)]
    assert offered(known, node(pool="training"))[1:] == [(name, True)]
    assert offered(known, Change("Node", "node-1", None))[1:] == [(name, False)]
    gone = Change("ResourceSlice", name, None)
    assert offered(known, gone) == [(name, False)]
    assert offered(known, node(pool="training")) == [("node-1", True)]


def test_devices_of_no_one_node_are_owned_only_where_all_nodes_are() -> None:
    """Nobody owns a part of a fabric."""
    fabric = change(builders.resource_slice(all_nodes=True))
    assert offered(StateFilter(Ownership()), fabric)[0][1]
    assert not offered(StateFilter(Ownership.of((), (), TRAINING)), fabric)[0][1]


def test_devices_of_others_are_counted_while_they_are_there() -> None:
    """Our own slices are not others', and what is ours to give is not either."""
    theirs = builders.resource_slice(*builders.devices(3), driver=OTHER)
    known = StateFilter(Ownership.of((DRIVER,), (), ()))
    offered(known, change(THEIRS), change(theirs))
    assert +known.foreign_devices == {OTHER: 3}
    offered(known, change(theirs))
    assert +known.foreign_devices == {OTHER: 3}
    offered(known, replace_object(change(theirs)))
    assert not +known.foreign_devices


def replace_object(gone: Change) -> Change:
    return Change(gone.kind, gone.key, None)
