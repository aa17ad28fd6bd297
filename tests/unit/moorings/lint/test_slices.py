"""What is wrong with slices is found before anybody asks for their devices."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.features import Features
from contracts.ids import NodeName
from moorings.lint.findings import LintRule
from moorings.lint.slices import check_pools
from solver.devices.gather import Cluster
from solver.snapshot.parts import NodePart, PoolPart
from solver.snapshot.pools import pool_of_slices
from tests.builders import (
    DRIVER,
    counter_set,
    device,
    devices,
    node_selector,
    resource_slice,
)
from tests.builders.problems import observe, snapshot_of

NODES = [NodePart(name=NodeName("a"), labels={"rack": "r1"})]


def rules(*slices: Any) -> set[LintRule]:
    """Name the rules that the slices of one pool break."""
    named = {str(index): item for index, item in enumerate(slices)}
    pool: PoolPart = pool_of_slices(named)
    snapshot = snapshot_of({})
    for key, item in named.items():
        snapshot = observe(snapshot, key, item)
    cluster = Cluster(tuple(snapshot.inventory.pages), Features())
    found = check_pools([pool], NODES, cluster, Features())
    return {finding.rule for finding in found}


def piece(*content: Any, name: str = "s", **fields: Any) -> Any:
    """Make a slice of the pool `p`, of node `a` unless it is said."""
    return resource_slice(*content, name=name, node="a", pool="p", **fields)


def test_a_whole_pool_on_a_node_of_the_input_is_right() -> None:
    """Nothing is found where nothing is wrong."""
    assert rules(piece(*devices(2))) == set()


@pytest.mark.parametrize(
    ("slices", "rule"),
    [
        ((piece(slice_count=2),), LintRule.POOL_INCOMPLETE),
        (
            (piece(generation=1), piece(device("b"), name="t", generation=2)),
            LintRule.POOL_OBSOLETE,
        ),
        ((piece(slice_count=2), piece(name="t", slice_count=2)), LintRule.POOL_INVALID),
        (
            (
                piece(device(consumes={"c": {"memory": "9Gi"}}), slice_count=2),
                piece(
                    name="t", slice_count=2, counters=[counter_set("c", memory="8Gi")]
                ),
            ),
            LintRule.COUNTER_EXCEEDED,
        ),
        (
            (piece(device(attributes={"x": 1, f"{DRIVER}/x": 2})),),
            LintRule.ATTRIBUTE_TWICE,
        ),
        ((resource_slice(name="s", node="gone", pool="p"),), LintRule.SLICE_NOWHERE),
        ((piece(node_selector=node_selector(rack="r2")),), LintRule.SLICE_NOWHERE),
    ],
)
def test_a_mistake_is_found_by_its_rule(
    slices: tuple[Any, ...], rule: LintRule
) -> None:
    """Generations, names, counters, and nodes that are not there."""
    assert rule in rules(*slices)
