"""What a gang asks for of each resource, and what it was given."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.features import Features
from contracts.messages import QuotaHeld
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import GangPart
from solver.problem.quota.asked import add_held, count_asked, count_held
from tests.builders import (
    DEVICE_CLASS,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.problems import problem_of, snapshot_of
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues

CLASSES = {DEVICE_CLASS: ("true",), "nic": ("true",)}
QUOTAS = {"any": dict.fromkeys(("gpu", "nic", "cpu", "pods"), 99)}


def mapping(**more: Any) -> dict[str, Any]:
    entry = {"name": "gpu", "deviceClassNames": [DEVICE_CLASS], **more}
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "metadata": {"name": "kueue"},
        "resources": {"deviceClassMappings": [entry]},
    }


def part_of(asked: object, *, source: dict[str, Any] | None = None) -> GangPart:
    """Resolve a gang of two such pods, in a queue that covers all."""
    claim = member_claim(asked)  # type: ignore[arg-type]  # a request
    wanted = gang(member(claim, count=2, resources={"cpu": "500m"}), namespace="a")
    more = {} if source is None else {"sources": [source]}
    snapshot = with_queues(
        snapshot_of({}, [wanted], classes=CLASSES),
        mapping(**more),
        flavor("any"),
        cluster_queue("q", QUOTAS),
        local_queue("a", "q"),
    )
    (part,) = resolve_gangs(snapshot, snapshot.gangs.values(), Features())
    return part


@pytest.mark.parametrize(
    ("asked", "gpus", "nics"),
    [
        (request(count=3), 3, 0),
        (request(count=3, device_class="nic"), 0, 3),
        (request(mode="All"), 32, 0),
        (request(count=3, admin_access=True), 0, 0),
        (
            request(
                first_available=(
                    sub_request("a", count=2),
                    sub_request("b", count=5, device_class="nic"),
                )
            ),
            2,
            5,
        ),
    ],
)
def test_what_a_gang_may_get_counts(asked: object, gpus: int, nics: int) -> None:
    """Of alternatives the most, of all devices what a claim can hold."""
    part = part_of(asked)
    assert part.queue is not None
    counted = count_asked(part, part.queue)
    assert counted == {
        name: amount
        for name, amount in {
            "gpu": 2 * gpus,
            "nic": 2 * nics,
            "cpu": 1000,
            "pods": 2,
        }.items()
        if amount
    }


def test_shares_count_by_the_capacity_that_is_mapped() -> None:
    """As the request says it; one that does not say it waits, by name."""
    source = {"capacity": {"name": "example.com/memory", "driver": "d"}}
    asked = request(count=2, capacity={"memory": "10"})
    part = part_of(asked, source=source)
    assert part.queue is not None
    assert count_asked(part, part.queue)["gpu"] == 2 * 2 * 10
    (reason,) = part_of(request(), source=source).refused
    assert "names no example.com/memory" in reason.message


def test_counters_are_not_counted_and_no_yes() -> None:
    """The field is named."""
    (reason,) = part_of(request(), source={"counter": {"name": "x"}}).refused
    assert "deviceClassMappings[gpu].sources" in reason.message


def test_what_is_given_is_held() -> None:
    """Whatever was asked for at most; more pods of the gang add to it."""
    either = request(first_available=[sub_request("a"), sub_request("b", count=2)])
    wanted = gang(member(member_claim(either), count=2), namespace="a")
    nodes = {"n": [pool(*devices(4), name="n")]}
    snapshot = with_queues(
        snapshot_of(nodes, [wanted]),
        flavor("any"),
        cluster_queue("q", {"any": {DEVICE_CLASS: 4}}),
        local_queue("a", "q"),
    )
    problem = problem_of(snapshot)
    (part,), (answer,) = problem.gangs, allocate(problem).gangs
    held = count_held(part, answer.members)
    one = QuotaHeld(
        cluster_queue="q", flavors={DEVICE_CLASS: "any"}, amounts={DEVICE_CLASS: 2}
    )
    assert held == one
    both = add_held(held, one)
    assert both is not None
    assert both.amounts == {DEVICE_CLASS: 4}
    assert add_held(None, one) == one
    assert count_held(part, ()) is None
