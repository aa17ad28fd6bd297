"""Nodes without who prepares their devices, and pools of two publishers."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced
from moorings.doctor.check_nodes import (
    AGENT_LABEL,
    check_announced_pools,
    check_nodes,
    check_pools,
)
from tests.builders import devices, pool
from tests.builders.doctor import bus_facts, cluster_facts, worst
from tests.lab.controlplane import objects

DRIVER = "gpu.example.com"
NODES = (objects.node("a", {AGENT_LABEL: "true"}), objects.node("b"))


def claim(node: str, driver: str = DRIVER) -> dict[str, Any]:
    """Make a claim that is allocated on a node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    made = objects.claim("n", f"of-{node}", {})
    made["status"] = {
        "allocation": {
            "devices": {"results": [{"driver": driver, "pool": node, "device": "d"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    }
    return made


def slices(name: str, *specs: dict[str, Any], driver: str = DRIVER) -> list[Any]:
    return objects.pool(driver, name, *specs)


def local(node: str, *names: str) -> dict[str, Any]:
    return {"nodeName": node, "devices": [{"name": name} for name in names]}


def announced(node: str, name: str) -> DevicesAnnounced:
    return DevicesAnnounced(
        cluster=ClusterName("local"),
        node=NodeName(node),
        pools=(pool(*devices(1), name=name),),
    )


def test_a_claim_where_its_driver_publishes_nothing_is_found() -> None:
    published = tuple(slices("a", local("a", "d")))
    facts = cluster_facts(nodes=NODES, slices=published, claims=(claim("a"),))
    assert worst(check_nodes(facts, None)) == {}
    facts = cluster_facts(
        nodes=NODES, slices=published, claims=(claim("a"), claim("b"), claim("gone"))
    )
    line = worst(check_nodes(facts, None))["nodes.driver"]
    assert (line.level, f"{DRIVER} on b;" in line.why) == ("fail", True)


def test_devices_of_several_nodes_need_no_slice_of_each() -> None:
    network = tuple(slices("all", {"allNodes": True, "devices": [{"name": "d"}]}))
    facts = cluster_facts(nodes=NODES, slices=network, claims=(claim("b"),))
    assert worst(check_nodes(facts, None)) == {}


@pytest.mark.parametrize(
    ("heard", "known", "words"),
    [
        ("a", "a", ""),
        ("ab", "ab", ""),
        ("", "", "have the label of an agent, and none is heard of: a"),
        ("a", "ab", "agents are silent: no gang begins there: b"),
        ("ac", "a", "have an agent and no Node: nothing is published for them: c"),
    ],
)
def test_agents_are_where_they_should_be(heard: str, known: str, words: str) -> None:
    bus = bus_facts(
        heard=frozenset(heard),
        inventories={NodeName(node): announced(node, node) for node in known},
    )
    lines = worst(check_nodes(cluster_facts(nodes=NODES), bus))
    assert [words in line.why for line in lines.values()] == ([True] if words else [])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (slices("one", local("a", "d")) + slices("two", local("b", "d")), ""),
        (slices("p", local("a", "d")) + slices("p", local("b", "e")), "of nodes a, b"),
        (slices("p", local("a", "d"), local("a", "d")), "has d twice"),
        (slices("p", local("a", "d"), local("a", "e"))[:1], "1 of 2 slices"),
        (
            slices("p", local("a", "d"))
            + slices("p", local("b", "d"), driver="nic.example.com"),
            "",
        ),
    ],
)
def test_pools_that_collide_are_named(made: list[Any], words: str) -> None:
    lines = worst(check_pools(cluster_facts(slices=tuple(made))))
    assert list(lines) == (["pools.cluster"] if words else [])
    assert all(f"{DRIVER}/p ({words})" in line.why for line in lines.values())


def test_two_who_publish_a_pool_by_turns_are_seen_whoever_was_last() -> None:
    """Each begins a generation of its own, so the newest shows one of them alone."""
    old, new = slices("p", local("a", "d")) + slices("p", local("b", "d"))
    new["spec"]["pool"]["generation"] = 2
    assert "pools.cluster" in worst(check_pools(cluster_facts(slices=(old, new))))


def test_an_old_generation_of_one_publisher_is_no_finding() -> None:
    old, new = slices("p", local("a", "d")) + slices("p", local("a", "d"))
    new["spec"]["pool"]["generation"] = 2
    assert worst(check_pools(cluster_facts(slices=(old, new)))) == {}


def test_a_pool_of_two_agents_is_named_with_both() -> None:
    own = {NodeName(node): announced(node, node) for node in "ab"}
    assert worst(check_announced_pools(bus_facts(inventories=own))) == {}
    shared = {NodeName(node): announced(node, "p") for node in "ab"}
    line = worst(check_announced_pools(bus_facts(inventories=shared)))["pools.bus"]
    assert (line.level, "/p (by a, b)" in line.why) == ("fail", True)
