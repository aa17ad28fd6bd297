"""Nodes of one kind, and devices of one group, can be exchanged: nobody gains or loses.

Said twice: of answers, in which they are exchanged, and of Problems, in which names and
unique values are given out anew.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from msgspec import structs

from contracts.device import Device, DeviceAttribute, ResourcePool
from contracts.ids import DeviceID, DeviceName, NodeName, PoolName
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.devices.gather import Cluster
from solver.engines.solve import answer
from solver.judge.rules import judge
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeView
from solver.placement import GangPlacement, PodPlacement
from solver.problem.gang_refusals import find_unmodelled
from solver.problem.problem import Problem
from solver.results import Results
from tests.draw.crowds import ROOT, World, world
from tests.draw.drawn import drawn
from tests.lab.soak import sized

PROBLEMS = sized(30, 4_000)
NODES = 4
SEEN: Counter[str] = Counter()
Names = dict[tuple[NodeName, DeviceID], DeviceID]


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


def small(seed: int) -> World:
    """Draw a small cluster; every other one is of unused nodes that are alike."""
    made = world(seed, nodes=(2, 6), gangs=(1, 6))
    if not seed % 2:
        return made
    first, known = next(iter(made.pools.values())), made.known[0]
    alike = [structs.replace(known, metadata=item.metadata) for item in made.known]
    pools = {name: structs.replace(first, name=PoolName(name)) for name in made.pools}
    return structs.replace(made, pools=pools, known=tuple(alike), taken=())


# --- in an answer ------------------------------------------------------------------


class Exchange:
    """One way to exchange the nodes of every kind, and the devices of every group."""

    def __init__(self, problem: Problem, draw: random.Random) -> None:
        demand = Demand(problem.gangs, expected=problem.expected)
        self._nodes: dict[NodeName, NodeName] = {}
        self._devices: Names = {}
        for kind in find_node_kinds(problem, demand.query):
            others = draw.sample(kind.nodes, len(kind.nodes))
            for before, after in zip(kind.nodes, others, strict=True):
                self._exchange(before, after, draw)

    def _exchange(self, before: NodeView, after: NodeView, draw: random.Random) -> None:
        self._nodes[before.name] = after.name
        groups = zip(before.shape.groups, before.groups, after.groups, strict=True)
        for shape, mine, others in groups:
            named = list(others.devices)
            if not shape.identity:
                draw.shuffle(named)
            for device, other in zip(mine.devices, named, strict=True):
                self._devices[before.name, device] = other

    def placed(self, item: GangPlacement) -> GangPlacement:
        """Exchange what the pods of a gang have."""
        members = tuple(tuple(map(self._place, places)) for places in item.members)
        return GangPlacement(item.gang, members)

    def _place(self, place: PodPlacement) -> PodPlacement:
        devices = tuple(
            tuple(self._devices[place.node, device] for device in listed)
            for listed in place.devices
        )
        return PodPlacement(self._nodes[place.node], devices, place.alternatives)


def written(
    problem: Problem, placed: list[GangPlacement], decision: Decision
) -> Decision:
    """Write an answer down in place of the decided one."""
    demand = Demand(problem.gangs)
    cluster = Cluster(problem.pages, problem.parameters.features)
    results = Results(problem, cluster, narrow=True)
    found = {demand.gangs[item.gang].uid: item for item in placed}
    parts = {gang.uid: gang for gang in demand.gangs}
    gangs = tuple(
        structs.replace(gang, members=results.of_gang(parts[gang.uid], found[gang.uid]))
        if gang.uid in found
        else gang
        for gang in decision.gangs
    )
    return structs.replace(decision, gangs=gangs)


def nodes_of(placed: Iterable[GangPlacement]) -> list[NodeName]:
    return [place.node for p in placed for places in p.members for place in places]


def violations(problem: Problem, draw: random.Random) -> tuple[str, ...]:
    """Judge the answer once more, exchanged; its value is what it was."""
    exchange = Exchange(problem, draw)
    known = answer(problem).placements
    placed = [exchange.placed(item) for item in known]
    SEEN["unmoved" if placed == list(known) else "moved"] += 1
    SEEN["on other nodes"] += nodes_of(placed) != nodes_of(known)
    return judge(problem, written(problem, placed, allocate(problem)))


def test_an_exchanged_answer_is_as_good(evaluator: SelectorEvaluator) -> None:
    """The judge finds no rule broken, and the value of every tier as it was."""
    for seed in range(PROBLEMS):
        draw = random.Random(f"exchange {seed}")
        problem, _ = drawn(seed, evaluator, nodes=NODES)
        listed = [gang for gang in problem.gangs if not gang.refused]
        if not any(find_unmodelled(gang, problem) for gang in listed):
            assert not violations(problem, draw), f"seed {seed}"
        assert not violations(small(seed).problem, draw), f"crowd {seed}"


# --- in a Problem ------------------------------------------------------------------


def names_of(seed: int) -> dict[str, str]:
    """Give nodes and devices each other's names."""
    draw = random.Random(f"names {seed}")
    nodes = [f"node-{number}" for number in range(1, NODES + 1)]
    devices = [f"dev-{number}" for number in range(100)]
    return {
        **dict(zip(nodes, draw.sample(nodes, len(nodes)), strict=True)),
        **dict(zip(devices, draw.sample(devices, len(devices)), strict=True)),
    }


def renamed(made: World, draw: random.Random) -> World:
    """Give nodes, devices and PCIe roots each other's names, or new ones."""
    nodes = list(made.pools)
    names = dict(zip(nodes, draw.sample(nodes, len(nodes)), strict=True))
    pools, devices = {}, dict[tuple[str, str], DeviceName]()
    for node, item in made.pools.items():
        own = [device.name for device in item.devices]
        for device, other in zip(own, draw.sample(own, len(own)), strict=True):
            devices[item.name, device] = other
        pools[names[node]] = _renamed_pool(item, names[node], devices, draw)
    known = tuple(
        structs.replace(
            item,
            metadata=structs.replace(item.metadata, name=names[item.metadata.name]),
        )
        for item in made.known
    )
    taken = tuple(
        DeviceID(d.driver, PoolName(names[d.pool]), devices[d.pool, d.device])
        for d in made.taken
    )
    return structs.replace(
        made, pools=dict(sorted(pools.items())), known=known, taken=taken
    )


def _renamed_pool(
    item: ResourcePool,
    node: str,
    devices: dict[tuple[str, str], DeviceName],
    draw: random.Random,
) -> ResourcePool:
    roots = [f"pci-{number}-{draw.random()}" for number in range(len(item.devices))]
    found: dict[DeviceAttribute, DeviceAttribute] = {}

    def root(value: DeviceAttribute) -> DeviceAttribute:
        return found.setdefault(value, DeviceAttribute(string_value=roots[len(found)]))

    content: list[Device] = []
    for device in draw.sample(item.devices, len(item.devices)):
        attributes = {
            key: root(value) if key == ROOT else value
            for key, value in device.attributes.items()
        }
        name = devices[item.name, device.name]
        content.append(structs.replace(device, name=name, attributes=attributes))
    return structs.replace(item, name=PoolName(node), devices=tuple(content))


def said(decision: Decision) -> object:
    """Say what a decision comes to, whatever bears which name."""
    errors = [gang.uid for gang in decision.gangs if gang.verdict == "error"]
    return decision.status, decision.objective, errors


@pytest.mark.parametrize("seed", range(0, PROBLEMS, 10))
def test_names_decide_nothing(seed: int, evaluator: SelectorEvaluator) -> None:
    """Status, value and bound of every tier are equal under other names."""
    for number in range(seed, seed + 10):
        one, _ = drawn(number, evaluator, nodes=NODES)
        two, _ = drawn(number, evaluator, nodes=NODES, names=names_of(number))
        assert said(allocate(one)) == said(allocate(two)), f"seed {number}"
        SEEN["renamed" if one.hash != two.hash else "the same"] += 1


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_unique_values_decide_nothing(seed: int) -> None:
    """So they are where nodes, devices and PCIe roots are called otherwise."""
    made = small(seed)
    other = renamed(made, random.Random(f"values {seed}")).problem
    first, second = allocate(made.problem), allocate(other)
    assert said(first) == said(second)
    SEEN["placed" if any(gang.members for gang in first.gangs) else "none"] += 1


def test_the_laws_are_no_empty_ones() -> None:
    """Most answers had something to exchange, and most Problems other names."""
    assert SEEN["moved"] > PROBLEMS // 2, SEEN
    assert SEEN["on other nodes"] > PROBLEMS // 4, SEEN
    assert SEEN["renamed"] > 9 * SEEN["the same"], SEEN
    assert SEEN["placed"] > SEEN["none"], SEEN
