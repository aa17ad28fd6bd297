"""First prices, and node classes in clusters."""

from __future__ import annotations

import pytest
from msgspec import structs

from solver.engines.pattern.columns import model
from solver.engines.pattern.columns.master_data import SCALE
from solver.engines.pattern.columns.model import count_devices, spread_weights
from tests.builders import gang, member, member_claim, request
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes, pattern_model

BOTH = gang(
    member(name="small", count=2),
    member(member_claim(request(count=4)), name="large"),
    weight=60,
)


def test_a_gangs_worth_is_spread_by_the_devices_of_its_pods() -> None:
    """All its pods together are worth the gang."""
    demand, _ = demand_and_kinds(nodes_of_sizes(8), BOTH)
    small, large = spread_weights(demand)
    assert (small, large) == (10 * SCALE, 40 * SCALE)


def test_a_pod_without_devices_has_a_price() -> None:
    """It counts as one for one device."""
    bare = structs.replace(member(), claims=())
    demand, _ = demand_and_kinds(nodes_of_sizes(8), gang(bare, weight=1))
    assert count_devices(demand, 0) == 1
    assert spread_weights(demand)[0] > 0


def test_every_class_is_in_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many clusters, of classes that earn alike."""
    monkeypatch.setattr(model, "CLUSTERS", 2)
    data = pattern_model(nodes_of_sizes(1, 2, 3, 4), gang(member(count=9))).data
    assert [sorted(data.sizes[c] for c in cluster) for cluster in data.clusters] == [
        [1, 1],
        [1, 1],
    ]
    assert sorted(c for cluster in data.clusters for c in cluster) == [0, 1, 2, 3]


def test_equal_nodes_are_one_class_and_levels_are_exact_where_none_matter() -> None:
    """What is left over has a value only where it is asked for."""
    made = pattern_model(nodes_of_sizes(2, 2, 2), gang())
    assert made.data.sizes == (3,)
    assert made.is_exact
    assert made.slack_values is None
    assert made.bound_pricing is made.pricing
