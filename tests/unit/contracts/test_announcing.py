"""Whose word about a pool counts, and of which drivers agents speak at all."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.announcing import describe_contest, find_speakers, limit_drivers
from contracts.ids import ClusterName, DriverName, NodeName, PoolID, PoolName
from contracts.messages import DevicesAnnounced
from tests.builders import DRIVER, devices, pool

OTHER = "gpu.vendor.example"


def speakers(name: str, **devices_by_node: int) -> str:
    """Name whose word counts of nodes that announce a pool; `_` is `-`."""
    announced = {
        NodeName(node.replace("_", "-")): replace(pool(), devices=devices(count))
        for node, count in devices_by_node.items()
    }
    return " ".join(find_speakers(PoolName(name), announced))


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        ({"evil": 2}, "evil"),
        ({"n_1": 2, "evil": 2}, "n-1"),
        ({"n_1": 0, "evil": 2}, "n-1"),
        ({"n_1": 2, "evil": 0}, "n-1"),
        ({"b": 2, "a": 2}, "a b"),
        ({"b": 2, "a": 0}, "b"),
        ({"b": 0, "a": 0}, "a"),
    ],
)
def test_a_pool_is_of_the_node_that_it_is_named_after(
    counts: dict[str, int], named: str
) -> None:
    """Of a pool that is named after nobody, an empty one contests nothing."""
    assert speakers("n-1", **counts) == named


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("n-1-nics", "n-1"),
        ("nics/n-1", "n-1"),
        ("n-10", "n"),
        ("an-1", "evil n n-1"),
        ("n", "n"),
    ],
)
def test_a_name_may_be_a_part_of_its_pools(name: str, named: str) -> None:
    """Whole, and the longest of several: a node `n` has no say about `n-1`."""
    assert speakers(name, n=1, n_1=1, evil=1) == named


def test_the_beginning_of_a_name_outweighs_a_longer_end() -> None:
    """A node `nics` takes nothing from `n-1`; where both are whole, nobody does."""
    assert speakers("n-1-nics", n_1=1, nics=1) == "n-1"
    assert speakers("nics/n-1-gpus", n_1=1, gpus=1) == "n-1"
    assert speakers("nics/n-1", n_1=1, nics=1) == "n-1 nics"


def test_pools_of_drivers_that_no_agent_speaks_for_are_left_out() -> None:
    """By name; where no driver is set agents speak for any."""
    ours, theirs = pool(name="a"), pool(name="a", driver=OTHER)
    message = DevicesAnnounced(
        cluster=ClusterName("c"), node=NodeName("a"), pools=(ours, theirs)
    )
    kept, (refusal,) = limit_drivers(message, {DriverName(DRIVER)})
    assert kept.pools == (ours,)
    assert refusal.field == f"pools[{OTHER}/a]"
    assert "AGENT_DRIVERS" in refusal.reason
    assert limit_drivers(message, ()) == (message, ())
    both = {DriverName(DRIVER), DriverName(OTHER)}
    assert limit_drivers(message, both) == (message, ())


def test_a_contest_names_the_pool_and_its_nodes() -> None:
    contested = PoolID(DriverName(DRIVER), PoolName("p"))
    nodes = [NodeName(name) for name in ("n-1", "evil")]
    said = describe_contest(contested, nodes)
    assert said == f"pool {DRIVER}/p is announced by nodes evil and n-1"
