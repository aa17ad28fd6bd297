"""The devices of a node as a batch sees them: who has one value of an attribute."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec import structs

from contracts.device import DeviceAttribute, ResourcePool
from contracts.features import Features
from solver.kinds import node_devices
from solver.kinds.nodes import find_node_kinds
from solver.kinds.query import Query, RequestKind
from solver.problem.attributes import Element, elements_of
from solver.problem.problem import Problem
from tests.builders import DRIVER, device, pool
from tests.builders.problems import PARAMETERS, problem_of, snapshot_of
from tests.builders.values import Value

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
