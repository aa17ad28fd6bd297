"""Nodes and their devices as a batch sees them: what is alike is read once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec import structs

from contracts.device import DeviceAttribute, ResourcePool
from contracts.features import Features
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.devices.gather import Cluster
from solver.kinds import node_devices
from solver.kinds.grouping import AlikeDevices, number_values
from solver.kinds.node_devices import DeviceReader
from solver.kinds.nodes import find_node_kinds, view_of
from solver.kinds.query import Column, Query, RequestKind
from solver.problem.attributes import Element, elements_of
from solver.problem.problem import Problem
from tests.builders import DRIVER, device, pool, taint
from tests.builders.problems import PARAMETERS, problem_of, snapshot_of
from tests.builders.values import Value

ROOT = "resource.example.com/root"
ANY = RequestKind((), (), False)
BY_ROOT = Query((ANY,), (Column(ROOT),))
BY_COUNT = Query((ANY,), ())


def gpus(node: str, roots: str) -> ResourcePool:
    """Make a device for each letter; equal letters are equal roots on that node."""
    made = (
        device(f"gpu-{i}", attributes={ROOT: f"{node}-{root}", "uuid": f"{node}-{i}"})
        for i, root in enumerate(roots)
    )
    return pool(*made, name=node)


def device_id(node: str, index: int) -> DeviceID:
    return DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(f"gpu-{index}"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the nodes that are read device by device."""
    names: list[str] = []
    read_each = DeviceReader._read_each  # it is counted

    def counting(self: DeviceReader, node: object) -> object:
        names.append(node.name)  # type: ignore[attr-defined]
        return read_each(self, node)  # type: ignore[arg-type]

    monkeypatch.setattr(DeviceReader, "_read_each", counting)
    return names


def kinds_of(asked: Problem, query: Query) -> list[set[str]]:
    """Name the nodes of each kind; each must be seen as when it is looked at alone."""
    cluster = Cluster(asked.pages, asked.parameters.features)
    kinds = find_node_kinds(asked, query)
    for kind in kinds:
        for node in kind.nodes:
            assert node == view_of(cluster.nodes[node.name], query, asked)
            found = {name.pool for group in node.groups for name in group.devices}
            assert found <= {node.name}
    return [{str(node.name) for node in kind.nodes} for kind in kinds]


def test_nodes_that_differ_in_names_alone_are_read_once(read: list[str]) -> None:
    """Pool, uuid and root of each device are its own; which are equal is not."""
    nodes = {f"n{i}": [gpus(f"n{i}", "aabb")] for i in range(5)}
    nodes |= {"odd": [gpus("odd", "abab")]}
    asked = problem_of(snapshot_of(nodes))
    find_node_kinds(asked, BY_ROOT)
    assert len(read) == 2
    assert kinds_of(asked, BY_ROOT) == [{*nodes}]
    read.clear()
    find_node_kinds(asked, BY_COUNT)
    assert len(read) == 1


def test_who_is_taken_and_which_roots_are_equal_sets_nodes_apart() -> None:
    """What is left of the nodes are pairs of one root, or two devices of two roots."""
    nodes = {f"n{i}": [gpus(f"n{i}", "aabb")] for i in range(3)}
    nodes |= {"odd": [gpus("odd", "abab")]}
    taken = [device_id(name, i) for name in ("n1", "n2", "odd") for i in (0, 1)]
    asked = problem_of(snapshot_of(nodes, taken=taken))
    assert kinds_of(asked, BY_ROOT) == [{"n0"}, {"n1", "n2"}, {"odd"}]
    assert kinds_of(asked, BY_COUNT) == [{"n0"}, {"n1", "n2", "odd"}]


def test_a_value_that_is_compared_between_nodes_sets_them_apart() -> None:
    """Then equality on the node is not enough."""
    nodes = {f"n{i}": [gpus(f"n{i}", "aa")] for i in range(2)}
    named = structs.replace(BY_ROOT, named=(0,))
    assert kinds_of(problem_of(snapshot_of(nodes)), named) == [{"n0"}, {"n1"}]


def test_what_is_not_plain_is_read_by_itself(read: list[str]) -> None:
    """A sick device, and one that binds."""
    binding = device("gpu-0", binding_conditions=("ready",))
    nodes = {f"n{i}": [gpus(f"n{i}", "a")] for i in range(4)}
    nodes |= {f"s{i}": [pool(binding, name=f"s{i}")] for i in range(2)}
    sick = {device_id("n1", 0): taint(), device_id("n2", 0): taint()}
    asked = problem_of(snapshot_of(nodes, taints=sick))
    find_node_kinds(asked, BY_COUNT)
    assert set(read) >= {"n1", "n2", "s0", "s1"}
    assert len(read) == 5
    assert kinds_of(asked, BY_COUNT)[0] == {"n0", "n3", "s0", "s1"}


def test_devices_that_are_shared_are_read_once_where_amounts_are_equal(
    read: list[str],
) -> None:
    """What some have more of sets them apart, whatever serves."""
    nodes = {
        f"n{i}": [
            pool(
                device(
                    "gpu-0", capacity={"m": amount}, allow_multiple_allocations=True
                ),
                name=f"n{i}",
            )
        ]
        for i, amount in enumerate((10, 10, 20, 3, 3))
    }
    asked = problem_of(snapshot_of(nodes))
    by_amount = RequestKind((), (), all_devices=False, capacity=(("m", 5 * 10**9),))
    query = Query(requests=(by_amount,), columns=())
    find_node_kinds(asked, query)
    assert len(read) == 3
    assert kinds_of(asked, query) == [{"n0", "n1"}, {"n2"}, {"n3", "n4"}]


RAIL = f"{DRIVER}/rail"
LISTING = structs.replace(PARAMETERS, features=Features(list_type_attributes=True))


def asking(*values: Element) -> Query:
    """Ask for a device with each of these values of a rail."""
    kinds = (RequestKind((), (), False, values=((RAIL, value),)) for value in values)
    return Query(tuple(kinds), ())


def serving(asked: Problem, query: Query) -> list[list[str]]:
    """Name by request the devices that may serve it."""
    return [
        sorted(
            str(name.device)
            for kind in find_node_kinds(asked, query)
            for node in kind.nodes
            for shape, group in zip(kind.shape.groups, node.groups, strict=True)
            if shape.mask >> request & 1
            for name in group.devices
        )
        for request in range(len(query.requests))
    ]


def published(rails: Mapping[str, Value]) -> dict[str, list[ResourcePool]]:
    """Make one node with devices on these rails."""
    made = [device(name, attributes={"rail": rail}) for name, rail in rails.items()]
    return {"n0": [pool(*made, device("bare"), name="n0")]}


def test_a_value_is_of_those_that_publish_it_and_no_other() -> None:
    """1, "1" and true differ; the key of the driver's own domain is the full name."""
    pools = published({"int": 1, "string": "1", "bool": True, "other": 2, "same": 1})
    asked = problem_of(snapshot_of(pools))
    query = asking(("int", 1), ("string", "1"), ("bool", True), ("int", 3))
    assert serving(asked, query) == [["int", "same"], ["string"], ["bool"], []]


def test_a_list_of_one_value_is_that_value_where_lists_are_switched_on() -> None:
    """Whatever was asked of the same pools before."""
    lists: dict[str, Value] = {"one": (1,), "two": (1, 2), "scalar": 1}
    snapshot = snapshot_of(published(lists))
    off, on = problem_of(snapshot), problem_of(snapshot, LISTING)
    query = asking(("int", 1))
    found = [serving(asked, query) for asked in (off, on, off)]
    assert found == [[["scalar"]], [["one", "scalar"]], [["scalar"]]]


def test_each_device_is_read_once_however_many_values_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when other values are asked for later."""
    read = list[object]()

    def counting(attribute: DeviceAttribute | None, features: Features) -> object:
        read.append(attribute)
        return elements_of(attribute, features)

    monkeypatch.setattr(node_devices, "elements_of", counting)
    asked = problem_of(snapshot_of(published({f"d{n}": n for n in range(7)})))
    for first in (0, 4):
        query = asking(*(("int", first + n) for n in range(3)))
        assert serving(asked, query) == [[f"d{first + n}"] for n in range(3)]
    assert len(read) == 8


def groups(*values: object, profile: tuple[int, int] = (1, 1)) -> list[AlikeDevices]:
    """Make groups of one device each with one value in one column."""
    return [AlikeDevices((frozenset({("int", v)}),), profile) for v in values]


def test_nodes_that_differ_in_the_values_alone_get_equal_numbers() -> None:
    """Unique ids do not split kinds of node."""
    one = number_values(["id"], groups(7, 7, 9))
    other = number_values(["id"], groups("x", "x", "a"))
    assert one == other
    assert one[0] == one[1] != one[2]


def test_values_of_one_attribute_are_numbered_together() -> None:
    """Two columns of one attribute give an equal value an equal number."""
    value = frozenset({("int", 1)})
    made = [AlikeDevices((value, value), (1, 1))]
    ((first, second),) = number_values(["id", "id"], made)
    assert first == second


def test_a_device_without_the_attribute_has_no_number() -> None:
    """No value is equal to nothing, not to another device that lacks it."""
    made = [AlikeDevices((frozenset(),), (1, 1)), *groups(3)]
    assert number_values(["id"], made) == [((),), ((1,),)]


def test_a_list_has_the_numbers_of_its_elements_ascending() -> None:
    """So that two lists are compared element by element."""
    both = AlikeDevices((frozenset({("int", 1), ("int", 2)}),), (2, 1))
    (list_numbers,), *_ = number_values(["id"], [both, *groups(2)])
    assert list_numbers == tuple(sorted(list_numbers))
    assert len(list_numbers) == 2
