"""What is said beside the decisions, of those who must go for others."""

from __future__ import annotations

from typing import cast

from msgspec import structs

from contracts.ids import GangKey, GangUID
from contracts.messages import Preemption
from solver.service.config import SolverConfig
from solver.service.decide import Decider
from solver.service.reserving import Reserving
from solver.timeline.preempting import believe
from tests.builders.timeline import World


async def test_who_may_stay_is_told_while_what_is_kept_still_changes() -> None:
    """Its pods would be evicted for nobody meanwhile."""
    world = World(nodes=1)
    record = world.start("runs")
    assert record.in_force is not None
    said = Preemption(
        preemptor=GangKey(record.namespace, GangUID("gone")),
        name="gone",
        until="2099-01-01T00:00:00Z",
        victims=(record.key,),
    )
    told = structs.replace(record.in_force, preempted=said)
    snapshot = believe(world.snapshot, [told])
    reserving = Reserving(
        SolverConfig(),
        cast("Decider", None),
        lambda: snapshot,
        lambda _: None,
    )
    await reserving._begin_look()
    (stays,) = reserving.make_preemptions(snapshot, epoch=7)
    assert (stays.uid, stays.epoch) == (record.uid, 7)
    assert stays.preempted is not None
    assert stays.preempted.until < said.until
