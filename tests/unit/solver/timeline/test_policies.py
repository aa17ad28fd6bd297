"""Who may be made to go for whom, by the policy of a ClusterQueue."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.ids import GangUID
from contracts.meta import OwnerReference
from solver.problem.assemble import resolve_gangs
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.patience import PREEMPTION_DELAY
from solver.timeline.policies import is_allowed, is_held_for_pods, is_part, list_allowed
from tests.builders.problems import PARAMETERS
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.timeline import World
from tests.builders.values import DEVICE_CLASS, NAMESPACE

NOW = 1000


def cohort_of(own: int, other: int, **policy: Any) -> World:
    """Make four full nodes of 8, of which `own` holds one, and `other` three.

    Their quotas are these; a third queue lends what is left of 32.
    """
    world = World(nodes=4)
    quotas = {"own": own, "other": other, "lender": 32 - own - other}
    for name, quota in quotas.items():
        made = cluster_queue(
            name, {"any": {DEVICE_CLASS: quota}}, cohort="all", preemption=policy
        )
        local = local_queue(NAMESPACE, name, name)
        world.snapshot = with_queues(world.snapshot, flavor("any"), made, local)
    world.start("low", queue="own", at_s=100)
    world.start("old", queue="other", at_s=100)
    world.start("young", queue="other", at_s=200)
    world.start("high", queue="other", priority=5, at_s=300)
    return world


def with_delay(snapshot: Snapshot, name: str) -> Snapshot:
    """Let a ClusterQueue give a delay after which others go."""
    queues = snapshot.queues.cluster_queues
    queue = queues.get(name)
    assert queue is not None
    said = {PREEMPTION_DELAY: "5m"}
    meta = structs.replace(queue.metadata, annotations=said)
    changed = queues.with_item(name, structs.replace(queue, metadata=meta))
    seen = structs.replace(snapshot.queues, cluster_queues=changed)
    return structs.replace(snapshot, queues=seen)


def allowed(world: World, gpus: int = 8, priority: int = 9) -> list[str]:
    waits = world.submit("waits", gpus=gpus, priority=priority, queue="own")
    (part,) = resolve_gangs(world.snapshot, [waits], PARAMETERS.features)
    found = list_allowed(world.snapshot, waits, part, NOW)
    return [each.record.name for each in found]


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        ({}, []),
        ({"withinClusterQueue": "LowerPriority"}, ["low"]),
        ({"withinClusterQueue": "Sometimes", "reclaimWithinCohort": ""}, []),
        ({"withinClusterQueue": "LowerOrNewerEqualPriority"}, ["low"]),
        ({"reclaimWithinCohort": "LowerPriority"}, ["young", "old"]),
        ({"reclaimWithinCohort": "Any"}, ["young", "old"]),
        ({"borrowWithinCohort": {"policy": "LowerPriority"}}, []),
    ],
)
def test_the_queue_says_who(policy: dict[str, Any], names: list[str]) -> None:
    """`other` borrows 16: two gangs go before it borrows nothing."""
    assert allowed(cohort_of(16, 8, **policy)) == names


def test_nobody_goes_who_would_not_borrow_by_then() -> None:
    reclaim = {"reclaimWithinCohort": "Any"}
    assert allowed(cohort_of(16, 16, **reclaim)) == ["young"]
    assert allowed(cohort_of(8, 24, **reclaim)) == []


def test_who_borrows_itself_takes_from_borrowers_up_to_a_threshold() -> None:
    policy: dict[str, Any] = {"reclaimWithinCohort": "Any"}
    assert allowed(cohort_of(8, 0, **policy)) == []
    policy["borrowWithinCohort"] = {"policy": "LowerPriority"}
    assert allowed(cohort_of(8, 0, **policy)) == ["young", "old", "high"]
    policy["borrowWithinCohort"] = {
        "policy": "LowerPriority",
        "maxPriorityThreshold": 1,
    }
    assert allowed(cohort_of(8, 0, **policy)) == ["young", "old"]


def test_nobody_of_an_equal_priority_goes_whatever_the_queue_says() -> None:
    both = {"withinClusterQueue": "LowerOrNewerEqualPriority"}
    both["reclaimWithinCohort"] = "Any"
    assert allowed(cohort_of(16, 0, **both), priority=0) == []
    assert "high" not in allowed(cohort_of(16, 0, **both), priority=5)


def test_a_part_of_a_gang_does_not_go() -> None:
    record = World(nodes=1).start("runs")
    assert record.submission is not None
    assert not is_part(record)
    restores = structs.replace(record.submission, restores=2)
    assert is_part(structs.replace(record, submission=restores))


def test_a_gang_whose_lost_pods_are_asked_for_does_not_go() -> None:
    world = cohort_of(16, 8, withinClusterQueue="LowerPriority")
    submission = world["low"].submission
    assert submission is not None
    again = structs.replace(submission, uid=GangUID("again"), restores=2)
    world.snapshot = apply(world.snapshot, again, sequence=99)
    assert allowed(world) == []


def test_a_gang_object_that_holds_devices_for_its_pods_does_not_go() -> None:
    """Nobody would make it anew."""
    world = World(nodes=1)
    record = world.start("holds", hold=True)
    assert record.submission is not None
    assert not is_held_for_pods(record)
    asked = record.submission.gang
    owner = OwnerReference(api_version="v1", kind="Gang", name="holds", uid="holds")
    meta = structs.replace(asked.metadata, owner_references=(owner,))
    submission = structs.replace(
        record.submission, gang=structs.replace(asked, metadata=meta)
    )
    held = structs.replace(record, submission=submission)
    assert is_held_for_pods(held)
    opened = structs.replace(world.run("holds"), submission=submission)
    assert not is_held_for_pods(opened)


def test_the_queue_may_let_another_one_go_no_more() -> None:
    within = {"withinClusterQueue": "LowerPriority"}
    reclaim = {"reclaimWithinCohort": "LowerPriority"}
    for policy, names in ((within, ["low"]), (reclaim, ["old", "young"]), ({}, [])):
        world = cohort_of(16, 8, **policy)
        waits = world.submit("waits", priority=5, queue="own")
        records = list(world.snapshot.placed.values())
        assert not any(is_allowed(world.snapshot, r, waits) for r in records)
        world.snapshot = with_delay(world.snapshot, "own")
        found = [r for r in records if is_allowed(world.snapshot, r, waits)]
        assert sorted(r.name for r in found) == names
