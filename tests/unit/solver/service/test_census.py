"""The cluster as gauges."""

from __future__ import annotations

from typing import Any, cast

from contracts.ids import NodeName
from contracts.messages import NodesLacking
from runtime.bus.bus import Bus
from solver.cel.evaluator import SelectorEvaluator
from solver.service import metrics
from solver.service.census import Census
from solver.service.latencies import Latencies
from tests.builders.timeline import World


class NoTime:
    """An evaluator that comes to none of what it is asked."""

    def evaluate_within(self, rows: list[Any], *_: object) -> tuple[list[None], None]:
        """Judge none of the rows."""
        return [None] * len(rows), None


async def count(world: World) -> dict[str, float]:
    """Count a world; gives the nodes that are lacking, by shape."""
    census = Census(
        cast("Bus", None),
        cast("SelectorEvaluator", NoTime()),
        Latencies(),
        leads=lambda: True,
        every_s=1.0,
    )
    await census.count(world.snapshot)
    (family,) = metrics.NODES_LACKING.collect()
    return {sample.labels["shape"]: sample.value for sample in family.samples}


async def test_nodes_that_gangs_lack_are_added_up_by_shape() -> None:
    world = World(1)
    world.start("runs")
    for number, name in enumerate(("a", "b"), start=1):
        world.wait_for(name)
        lacking = NodesLacking(count=number, like=NodeName("n-0"), shape="large")
        world.tell(name, None, (lacking,))
    assert await count(world) == {"large": 3.0}


async def test_shapes_beyond_the_most_are_added_up_together() -> None:
    """Whoever asks for a pod that no node could hold chooses what is said of it."""
    world = World(1)
    world.start("runs")
    world.wait_for("a")
    shapes = (NodesLacking(count=2, shape=f"s{number}") for number in range(40))
    world.tell("a", None, tuple(shapes))
    counted = await count(world)
    assert len(counted) == 33
    assert counted["other"] == 16.0
