"""A recorded solve with changes: decided as the cluster that had changed."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.quantity import Quantity
from moorings.errors import BadInputError, UnknownNameError, UsageError
from moorings.what_if.changes import Changes, change_cluster
from moorings.what_if.recorded import answer_recorded, change_problem
from solver.allocate import allocate
from solver.decision import DECISION
from solver.record import Recorded, sha_of
from solver.snapshot.snapshot import Snapshot
from tests.builders.problems import CLUSTER, problem_of
from tests.builders.solves import recorded
from tests.builders.timeline import World
from tests.builders.values import DRIVER


def tainted(node: str, name: str) -> Changes:
    device = DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(name))
    return Changes(taint=(device,))


def record(snapshot: Snapshot) -> Recorded:
    problem = problem_of(snapshot)
    return recorded(problem, allocate(problem), CLUSTER)


def make_world() -> World:
    """Two nodes of eight: a gang on one, and two that wait for one each."""
    world = World(2)
    world.start("runs")
    world.submit("first", priority=1)
    world.submit("second")
    return world


def test_a_taint_asks_what_the_tainted_cluster_would_be_asked() -> None:
    world = make_world()
    for node in ("n-0", "n-1"):
        changes = tainted(node, "gpu-3")
        changed = problem_of(change_cluster(world.snapshot, changes, CLUSTER))
        assert change_problem(problem_of(world.snapshot), changes).hash == changed.hash
        answer = answer_recorded(record(world.snapshot), changes)
        wanted = sha_of(DECISION.encode(allocate(changed)))
        assert answer.decisions.after == (wanted,)


def test_nodes_come_and_go_and_gangs_are_left_out() -> None:
    world = make_world()
    known = record(world.snapshot)
    (on,) = {
        pod.node
        for gang in DECISION.decode(known.decision).gangs
        for pod in gang.members
    }

    def ask(changes: Changes) -> dict[str, str]:
        answer = answer_recorded(known, changes)
        return {g.name: str(g.after and g.after.verdict) for g in answer.gangs}

    assert ask(Changes()) == {"team-a/first": "allocated", "team-a/second": "waits"}
    assert ask(Changes(add_nodes={NodeName("n-0"): 1})) == {
        "team-a/first": "allocated",
        "team-a/second": "allocated",
    }
    assert ask(Changes(without_nodes=(on,)))["team-a/first"] == "waits"
    assert ask(Changes(free=("first",)))["team-a/second"] == "allocated"


def test_what_a_record_does_not_have_is_said() -> None:
    known = record(make_world().snapshot)
    for changes in (
        Changes(free=("runs",)),
        Changes(without_nodes=(NodeName("n-7"),)),
        tainted("n-7", "gpu-0"),
    ):
        with pytest.raises(UnknownNameError):
            answer_recorded(known, changes)
    with pytest.raises(UsageError, match="--quota"):
        answer_recorded(known, Changes(quotas={"q/gpu": Quantity.parse("1")}))
    with pytest.raises(BadInputError, match="no answer"):
        answer_recorded(structs.replace(known, decision=b"", decided=None), Changes())
