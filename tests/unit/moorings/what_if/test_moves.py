"""Moves as a plan that a person reads, and carries out."""

from __future__ import annotations

import pytest

from moorings.deciding import Judged
from moorings.errors import UnknownNameError
from moorings.what_if.moves import Aim, MovesPlan, plan_moves
from solver.timeline.futures import without_gangs
from tests.builders.problems import PARAMETERS
from tests.builders.simulated import evaluate_rows
from tests.builders.timeline import World


def plan(world: World, aim: Aim) -> MovesPlan:
    judged = Judged(evaluate_rows)
    judged.table = world.asker().table
    return plan_moves(world.snapshot, PARAMETERS, judged, aim)


def halves() -> World:
    """Two nodes of eight devices, with four of each in use."""
    world = World(nodes=2)
    for name in "abcd":
        world.start(name, gpus=4)
    placed = list(world.snapshot.placed.values())
    first = {each.placed.members[0].node: each for each in placed if each.placed}
    ended = [each for each in placed if each not in first.values()]
    world.snapshot = without_gangs(world.snapshot, ended)
    return world


def test_a_step_names_pods_nodes_and_devices() -> None:
    found = plan(halves(), Aim(free_nodes=1))
    assert found.is_found
    assert found.proven
    (step,) = found.steps
    (pod,) = step.pods
    assert step.gang.startswith("team-a/")
    assert pod.pod == "worker-0"
    assert found.nodes == (pod.leaves,)
    assert pod.node != pod.leaves
    assert len(pod.devices) == 4
    assert all(f"/{pod.node}/" in device for device in pod.devices)


def test_the_gang_that_is_let_in_has_its_place() -> None:
    world = halves()
    world.submit("waits")
    found = plan(world, Aim(waits="waits"))
    (pod,) = found.places
    assert len(pod.devices) == 8
    assert pod.leaves == ""
    assert found.nodes == ()
    assert pod.node == found.steps[0].pods[0].leaves


def test_a_gang_that_nobody_submitted_is_placed_like_one_that_waits() -> None:
    world = halves()
    waits = world.submit("waits")
    waiting = plan(world, Aim(waits="team-a/waits"))
    assert waits.submission is not None
    assert plan(halves(), Aim(added=waits.submission)) == waiting


def test_who_does_not_wait_is_named() -> None:
    with pytest.raises(UnknownNameError, match="gang that waits"):
        plan(halves(), Aim(waits="nobody"))
