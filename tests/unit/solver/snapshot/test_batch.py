"""Which gangs are decided together, and which wait."""

from __future__ import annotations

from contracts.lifecycle import GangRecord
from solver.snapshot.batch import BatchLimits, choose_batch
from solver.snapshot.snapshot import (
    GangAttempted,
    Snapshot,
    apply,
)
from tests.builders import gang, member
from tests.builders.problems import snapshot_of


def gangs(*priorities: int, pods: int = 1) -> Snapshot:
    wanted = [
        gang(
            member(count=pods),
            name=f"g{index}",
            uid=f"00000000-0000-4000-8000-{index:012}",
            priority=priority,
        )
        for index, priority in enumerate(priorities)
    ]
    return snapshot_of({}, wanted)


def names(records: tuple[GangRecord, ...]) -> list[str]:
    return [record.name for record in records]


def test_a_batch_is_by_priority_then_age() -> None:
    """Higher first, and of equals the older."""
    batch = choose_batch(gangs(0, 5, 0, 5), BatchLimits())
    assert names(batch) == ["g1", "g3", "g0", "g2"]


def test_a_batch_has_limits_but_takes_one_gang_of_any_size() -> None:
    """A gang beyond the limit is decided alone."""
    assert len(choose_batch(gangs(*[0] * 5), BatchLimits(gangs=3))) == 3
    assert len(choose_batch(gangs(*[0] * 5, pods=4), BatchLimits(pods=8))) == 2
    assert len(choose_batch(gangs(0, pods=100), BatchLimits(pods=8))) == 1


def test_a_gang_is_tried_again_only_after_something_grew() -> None:
    """Asking again without news gives the same answer."""
    snapshot = gangs(0)
    (record,) = choose_batch(snapshot, BatchLimits())
    tried = GangAttempted(uid=record.uid, generation=snapshot.capacity_generation)
    snapshot = apply(snapshot, tried)
    assert choose_batch(snapshot, BatchLimits()) == ()
    grown = snapshot_of({}, []).inventory.with_next_generation()
    from msgspec import structs

    later = structs.replace(grown, capacity_generation=snapshot.capacity_generation + 1)
    snapshot = structs.replace(snapshot, inventory=later)
    assert len(choose_batch(snapshot, BatchLimits())) == 1


def test_a_resting_gang_is_left_out() -> None:
    """Whoever rests is passed by, whatever its priority."""
    (record,) = choose_batch(gangs(0), BatchLimits())
    assert choose_batch(gangs(0), BatchLimits(), resting={record.uid}) == ()
