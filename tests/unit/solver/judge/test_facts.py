"""What is read once for pools that look alike is what each device says."""

from __future__ import annotations

from itertools import product
from typing import Any

from msgspec import structs

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from solver.judge.facts import Facts
from tests.builders import (
    DRIVER,
    device,
    member_claim,
    pool,
    request,
    resource_slice,
    taint,
)
from tests.builders.broken import gang_of, problem_with
from tests.builders.problems import observe, snapshot_of

MODEL = f'device.attributes["{DRIVER}"].model == "big"'
INDEX = f'device.attributes["{DRIVER}"].index > 0'
MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("8Gi")) > 0'
FAULTY: dict[str, Any] = {"index": 2**64}
"""No selector can be asked about a device with such a number."""


def name_of(node: str, index: int) -> DeviceID:
    return DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(f"d{index}"))


def facts_of_many_looks() -> Facts:
    """Make nodes that differ in one device by one thing, or by nothing that is seen."""
    looks = list(product(("big", "small"), (0, 1, None), ("8Gi", "80Gi")))
    nodes = {}
    for number, (model, index, memory) in enumerate([*looks, *looks[:3]]):
        attributes: dict[str, Any] = {"model": model, "serial": f"s{number}"}
        if index is not None:
            attributes["index"] = index
        changed = device("d1", attributes=attributes, capacity={"memory": memory})
        like = device("d0", attributes={"model": "big", "index": 1})
        nodes[f"n{number}"] = [pool(like, changed, name=f"n{number}")]
    nodes["faulty"] = [
        pool(
            device("d0", attributes={"model": "big", **FAULTY}),
            device("d1", attributes={"model": "big", "index": 1}),
            name="faulty",
        )
    ]
    twins = [device(name, attributes={"model": "big"}) for name in ("x0", "x1")]
    nodes |= {"twins": [pool(*twins, name="twins")]}
    nodes |= {"swapped": [pool(*reversed(twins), name="swapped")]}
    nodes["others"] = [
        pool(
            *(
                structs.replace(each, name=DeviceName(f"y{each.name}"))
                for each in twins
            ),
            name="others",
        )
    ]
    selectors = ((), (MODEL,), (MODEL, INDEX), (INDEX, MODEL), (MEMORY,))
    gangs = [
        gang_of(member_claim(request(select=select)), number=number)
        for number, select in enumerate(selectors)
    ]
    taints = {name_of("n1", 1): taint()}
    snapshot = snapshot_of(nodes, gangs, taken=[name_of("n2", 0)], taints=taints)
    everywhere = resource_slice(
        device("d0", attributes={"model": "big"}), name="s", pool="net", all_nodes=True
    )
    return Facts(problem_with(observe(snapshot, "s", everywhere)))


def test_a_verdict_on_a_pool_is_that_on_each_device() -> None:
    """Whatever differs that a selector can see: another look is read anew."""
    facts = facts_of_many_looks()
    said = set()
    nodes = [
        *(f"n{number}" for number in range(15)),
        "faulty",
        "twins",
        "swapped",
        "others",
    ]
    for gang in facts.problem.gangs:
        (subrequest,) = gang.members[0].claims[0].requests[0].alternatives
        for node in map(NodeName, nodes):
            for pool_id, visible in facts.pools_of(node):
                for each, _ in visible.devices.values():
                    name = DeviceID(pool_id.driver, pool_id.pool, each.name)
                    found = facts.is_chosen(node, subrequest, name, each)
                    assert found == facts.is_selected(subrequest, name.driver, each)
                    said.add((found, subrequest.selectors[1:], pool_id.pool == "net"))
    assert {found for found, _, _ in said} == {True, False, None}


def test_devices_of_one_pool_differ_in_who_has_them() -> None:
    """They are read together, each with what is said of it alone."""
    facts = facts_of_many_looks()

    def read(node: str, index: int) -> Any:
        return facts.find_device(NodeName(node), name_of(node, index))

    assert [read("n2", index).taken for index in (0, 1)] == [True, False]
    assert [bool(read("n1", index).taints) for index in (0, 1)] == [False, True]
    assert [bool(read("n2", index).taints) for index in (0, 1)] == [False, False]
    assert read("n2", 7) is None
    assert facts.find_device(NodeName("n1"), name_of("n2", 0)) is None
