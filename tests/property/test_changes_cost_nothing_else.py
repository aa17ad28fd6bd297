"""What is kept from Problem to Problem never shows: changed step by step, or read anew.

The laws behind everything that is remembered of pages, nodes and questions.
"""

from __future__ import annotations

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from solver.allocate import allocate
from solver.decision import DECISION
from solver.devices.gather import Cluster
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds, view_of
from solver.kinds.query import Query
from solver.kinds.shapes import NodeKind, NodeShape
from solver.problem.problem import Problem
from solver.record import PartCache
from solver.snapshot.snapshot import NodePresence, Snapshot, apply
from tests.builders import (
    DRIVER,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    taint,
)
from tests.builders.problems import CLUSTER, problem_of, snapshot_of

Change = DevicesAnnounced | HealthJudged | NodePresence
NAMES = [NodeName(f"n{number}") for number in range(6)]
SHARED = "shared"


def announced(node: NodeName, counts: list[int]) -> DevicesAnnounced:
    pools = tuple(
        pool(*devices(count), name=f"{node}-{number}", generation=count + 1)
        for number, count in enumerate(counts)
    )
    if counts == [3, 3]:
        pools = (pool(*devices(2), name=SHARED),)
    return DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools)


def judged(node: NodeName, *, ill: bool) -> HealthJudged:
    name = DeviceID(DriverName(DRIVER), PoolName(f"{node}-0"), DeviceName("gpu-0"))
    found = DeviceHealth(device=name, verdict="Unhealthy", taints=(taint(),))
    return HealthJudged(cluster=CLUSTER, node=node, devices=(found,) if ill else ())


names = st.sampled_from(NAMES)
changes = st.one_of(
    st.builds(announced, names, st.lists(st.integers(0, 3), max_size=2)),
    st.builds(lambda node, ill: judged(node, ill=ill), names, st.booleans()),
    st.builds(
        lambda node, away: NodePresence(node=node, away=away), names, st.booleans()
    ),
)


def start() -> Snapshot:
    asked = gang(member(member_claim(request(count=2)), count=2))
    return snapshot_of({name: [pool(name=f"{name}-0")] for name in NAMES[:3]}, [asked])


def plain(kinds: tuple[NodeKind, ...]) -> list[tuple[object, ...]]:
    return [(kind.shape, [node.name for node in kind.nodes]) for kind in kinds]


def looked_at(problem: Problem, query: Query) -> list[tuple[object, ...]]:
    """Sort nodes into kinds, looking at each of them now."""
    cluster = Cluster(problem.pages, problem.parameters.features)
    found: dict[NodeShape, list[NodeName]] = {}
    for name in sorted(cluster.nodes):
        view = view_of(cluster.nodes[name], query, problem)
        if view is not None:
            found.setdefault(view.shape, []).append(name)
    return list(found.items())


def read_anew(problem: Problem) -> Problem:
    data = {page.sha: page.data for page in problem.pages}
    return PartCache().problem(problem.data, data)


@given(st.lists(st.lists(changes, max_size=3), max_size=6))
def test_kinds_that_follow_changes_are_those_of_a_fresh_look(
    steps: list[list[Change]],
) -> None:
    """What is kept of pages never shows in the kinds."""
    snapshot = start()
    for step in [[], *steps]:
        for message in step:
            snapshot = apply(snapshot, message)
        problem = problem_of(snapshot)
        query = Demand(problem.gangs).query
        assert plain(find_node_kinds(problem, query)) == looked_at(problem, query)


@given(st.lists(st.lists(changes, max_size=3), max_size=5))
def test_a_worker_that_was_sent_changes_answers_like_a_fresh_one(
    steps: list[list[Change]],
) -> None:
    """Byte for byte, whatever it was sent before."""
    snapshot, cache, sent = start(), PartCache(), set[str]()
    problems, answers = list[Problem](), list[bytes]()
    for step in [[], *steps]:
        for message in step:
            snapshot = apply(snapshot, message)
        problem = problem_of(snapshot)
        pages = {page.sha: page.data for page in problem.pages}
        new = {sha: data for sha, data in pages.items() if sha not in sent}
        there = cache.problem(problem.data, new)
        sent = set(pages)
        assert there.hash == problem.hash
        problems.append(problem)
        answers.append(DECISION.encode(allocate(there)))
    fresh = [DECISION.encode(allocate(read_anew(problem))) for problem in problems]
    assert answers == fresh


def test_a_change_leaves_the_neighbours_of_a_node_as_they_were() -> None:
    """The parts of all other nodes are the very same objects."""
    many = [NodeName(f"m{number}") for number in range(600)]
    snapshot = snapshot_of({name: [pool(name=f"{name}-0")] for name in many})
    before = {o: n for page in snapshot.inventory.pages for o, n in page.nodes.items()}
    cache = PartCache()
    first = problem_of(snapshot)
    there = cache.problem(first.data, {page.sha: page.data for page in first.pages})
    held = {o: n for page in there.pages for o, n in page.nodes.items()}
    message = announced(many[7], [2])
    second = problem_of(apply(snapshot, message))
    after = {o: n for page in second.pages for o, n in page.nodes.items()}
    assert {o for o in before if after[o] is not before[o]} == {many[7]}
    data = {page.sha: page.data for page in second.pages}
    there = cache.problem(second.data, data)
    now = {o: n for page in there.pages for o, n in page.nodes.items()}
    assert {o for o in held if now[o] is not held[o]} == {many[7]}


def test_what_was_replaced_is_free_without_a_collection() -> None:
    """The worker collects no cycles of what it keeps: they would stay for ever."""
    snapshot, cache = start(), PartCache()
    gc.collect()
    gc.disable()
    try:
        first = problem_of(snapshot)
        there = cache.problem(first.data, {page.sha: page.data for page in first.pages})
        allocate(there)
        old = [
            weakref.ref(part)
            for page in there.pages
            for part in page.parts()
            if part.owner == NAMES[0]
        ]
        second = problem_of(apply(snapshot, announced(NAMES[0], [2])))
        there = cache.problem(
            second.data, {page.sha: page.data for page in second.pages}
        )
        allocate(there)
        kept = {part.key for ref in old if (part := ref()) is not None}
        assert f"pool/{DRIVER}/{NAMES[0]}-0" not in kept
    finally:
        gc.enable()
