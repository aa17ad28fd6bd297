"""What a node sees of a pool: which slices count, and whether it may be used."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.device import DeviceCounterConsumption, NodeSelector, ResourceSlice
from contracts.features import Features
from contracts.ids import NodeName
from solver.devices.pools import PoolView, view_pool
from solver.errors import GatherError
from solver.snapshot.parts import NodePart, Part
from solver.snapshot.pools import pool_of_slices
from tests.builders import counter_set, device, node_selector, resource_slice

HERE = NodePart(name=NodeName("a"), labels={"zone": "west", "rank": "5"})


def view(*slices: ResourceSlice, features: Features = Features()) -> PoolView | None:  # noqa: B008  # frozen
    part = Part(pool_of_slices({str(i): item for i, item in enumerate(slices)}))
    return view_pool(part, HERE, features)


def slices_of(*names: str, count: int = 1, **fields: Any) -> ResourceSlice:
    content = tuple(device(name) for name in names)
    fields = {"name": "-".join(names) or "none", "node": "a", "pool": "p"} | fields
    return resource_slice(*content, slice_count=count, **fields)


def seen(found: PoolView | None) -> list[str]:
    assert found is not None
    assert found.usable, found.invalid
    return [
        found.devices[i].name
        for i in range(len(found.devices))
        if found.reachable >> i & 1
    ]


def test_slices_stand_by_name_and_devices_as_written() -> None:
    """As kube-scheduler takes them."""
    two = slices_of("y", "b", name="s2", count=2)
    one = slices_of("z", "x", name="s1", count=2)
    assert seen(view(two, one)) == ["z", "x", "y", "b"]


def test_a_pool_of_another_node_does_not_exist() -> None:
    """Nobody sees what is local elsewhere."""
    assert view(slices_of("x", node="b")) is None


def test_a_pool_that_lacks_slices_is_incomplete() -> None:
    """It is there, and nothing is allocated by counting all of it."""
    found = view(slices_of("x", count=2))
    assert found is not None
    assert found.incomplete


def test_too_many_slices_are_as_bad_as_too_few() -> None:
    """Their number must be the one that they say."""
    found = view(slices_of("x"), slices_of("y"))
    assert found is not None
    assert found.incomplete


def test_the_newest_generation_that_is_meant_for_the_node_counts() -> None:
    """Slices of older ones are leftovers."""
    old = slices_of("x", generation=1)
    assert seen(view(old, slices_of("y", generation=2))) == ["y"]


def test_a_complete_old_generation_is_used_while_the_pool_moves_away() -> None:
    """Until the node's own slices are gone."""
    moved = slices_of("y", node="b", generation=2)
    assert seen(view(slices_of("x", generation=1), moved)) == ["x"]


def test_an_incomplete_old_generation_is_ignored_once_there_is_a_newer() -> None:
    """What is left of it serves nobody."""
    moved = slices_of("y", node="b", generation=2)
    assert view(slices_of("x", generation=1, count=2), moved) is None


def test_slices_of_other_nodes_complete_a_pool_without_offering_devices() -> None:
    """They count as slices, their devices are elsewhere."""
    found = view(slices_of("x", count=2), slices_of("y", node="b", count=2))
    assert seen(found) == ["x"]
    assert found is not None
    assert found.elsewhere.bit_count() == 1


def test_a_device_name_used_twice_makes_a_pool_invalid() -> None:
    """Nobody could say which of the two is meant."""
    found = view(slices_of("x", name="s", count=2), slices_of("x", name="t", count=2))
    assert found is not None
    assert found.invalid == "duplicate device name x"


def test_slices_without_any_node_selection_are_ignored() -> None:
    """They are meant for no node."""
    item = slices_of("x")
    spec = structs.replace(item.spec, node_name=None)
    assert view(structs.replace(item, spec=spec)) is None


def test_each_device_may_say_where_it_is() -> None:
    """Only those that mean this node are offered to it."""
    content = (
        device("here", node_name=NodeName("a")),
        device("there", node_name=NodeName("b")),
        device("everywhere", all_nodes=True),
        device("nowhere"),
    )
    item = resource_slice(*content, pool="p", per_device_node_selection=True)
    found = view(item)
    assert seen(found) == ["here", "everywhere"]
    assert found is not None
    assert found.targeting.bit_count() == 4
    assert view(item, features=Features(partitionable_devices=False)) is None


COUNTED = (device("half", consumes={"gpu": {"memory": "40Gi"}}), device("plain"))


def counters(**fields: Any) -> ResourceSlice:
    sets = [counter_set("gpu", memory="80Gi")]
    return resource_slice(
        name="c", node="a", pool="p", counters=sets, slice_count=2, **fields
    )


def test_counters_lie_in_slices_of_their_own() -> None:
    """And are found by the devices that draw from them."""
    devices = resource_slice(*COUNTED, name="d", node="a", pool="p", slice_count=2)
    found = view(devices, counters())
    assert seen(found) == ["half", "plain"]
    assert found is not None
    assert [item.name for item in found.counters] == ["gpu"]


@pytest.mark.parametrize(
    ("consumes", "why"),
    [
        ({"cpu": {"memory": "1"}}, "counter set cpu not found"),
        ({"gpu": {"cores": "1"}}, "counter cores not found in counter set gpu"),
    ],
)
def test_unknown_counters_make_a_pool_invalid(consumes: Any, why: str) -> None:
    """What a device draws from must be there."""
    content = device("x", consumes=consumes)
    item = resource_slice(content, name="d", node="a", pool="p", slice_count=2)
    found = view(item, counters())
    assert found is not None
    assert found.invalid == why


def test_compatibility_groups_hide_a_slice_while_their_gate_is_off() -> None:
    """As upstream does, with all of its devices."""
    consumption = DeviceCounterConsumption(
        counter_set="gpu", compatibility_groups=("one",)
    )
    grouped = structs.replace(device("x"), consumes_counters=(consumption,))
    item = resource_slice(grouped, name="d", node="a", pool="p", slice_count=2)
    off = view(item, counters())
    assert off is not None
    assert off.incomplete
    assert seen(view(item, counters(), features=Features(compatibility_groups=True)))


def test_one_binding_device_marks_the_pool_even_with_an_empty_list() -> None:
    """Such pools come last, as upstream has it."""
    item = resource_slice(device("x", binding_conditions=()), node="a", pool="p")
    found = view(item)
    assert found is not None
    assert found.binding


def required(key: str, operator: str, *values: str) -> NodeSelector:
    base = node_selector(x="y")
    term = base.node_selector_terms[0]
    changed = structs.replace(
        term.match_expressions[0], key=key, operator=operator, values=values
    )
    terms = (structs.replace(term, match_expressions=(changed,)),)
    return structs.replace(base, node_selector_terms=terms)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (required("zone", "In", "west", "east"), True),
        (required("zone", "In", "east"), False),
        (required("other", "NotIn", "x"), True),
        (required("zone", "NotIn", "west"), False),
        (required("zone", "Exists"), True),
        (required("zone", "DoesNotExist"), False),
        (required("rank", "Gt", "4"), True),
        (required("rank", "Lt", "5"), False),
        (required("zone", "Gt", "1"), False),
        (NodeSelector(), False),
    ],
)
def test_a_slice_may_select_nodes(
    selector: NodeSelector, matches: bool
) -> None:  # a parameter of the table
    """By labels, as kube-scheduler reads them."""
    item = resource_slice(device("x"), pool="p", node_selector=selector)
    assert (view(item) is not None) == matches


@pytest.mark.parametrize(
    "selector",
    [
        required("zone", "In"),
        required("zone", "Exists", "x"),
        required("rank", "Gt", "x"),
        required("zone", "Like", "x"),
        required("-", "Exists"),
    ],
)
def test_a_selector_that_cannot_be_read_is_an_error(selector: NodeSelector) -> None:
    """It is an error of the node, in upstream's words."""
    item = resource_slice(device("x"), pool="p", node_selector=selector)
    with pytest.raises(GatherError, match="gather pool information"):
        view(item)
