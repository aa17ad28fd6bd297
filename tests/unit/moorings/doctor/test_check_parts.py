"""What runs in which version, who leads, and which nodes nobody prepares."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.fence import SolverSeen
from contracts.ids import ClusterName, GangKey, GangUID, Namespace, NodeName
from contracts.lifecycle import SubmissionSeen
from contracts.liveness import PublisherLeads
from contracts.messages import DevicesAnnounced
from moorings.doctor.check_nodes import (
    AGENT_LABEL,
    check_agents_on_bus,
    check_announced_pools,
    check_nodes,
    check_pace,
    check_published_pools,
)
from moorings.doctor.check_parts import (
    check_decisions,
    check_leader,
    check_lease,
    check_parts,
    check_solver,
)
from moorings.doctor.findings import CheckLine
from moorings.views.times import show_time
from tests.builders import devices, pool
from tests.builders.doctor import (
    DIGEST,
    NOW_S,
    bus_facts,
    cluster_facts,
    solver_seen,
    workload,
    worst,
)
from tests.lab.controlplane import objects

NOW = datetime.fromtimestamp(NOW_S, UTC)
CORE = ("nats", "publisher", "solver")


def node(**info: str) -> dict[str, Any]:
    made = objects.node("n")
    made["status"]["nodeInfo"] = info
    return made


@pytest.mark.parametrize(
    ("workloads", "check", "level", "words"),
    [
        ((), "parts.workloads", "warn", "no part of"),
        (
            (workload("nats"), workload("solver")),
            "parts.workloads",
            "fail",
            "publisher",
        ),
        (
            (*map(workload, CORE[:2]), workload("solver", ready=1)),
            "parts.ready",
            "fail",
            "solver (1 of 2)",
        ),
        (
            (
                *map(workload, CORE[:2]),
                workload("solver", f"moorings:0.1.0-abc{DIGEST}"),
            ),
            "parts.versions",
            "warn",
            f"moorings:0.1.0-abc{DIGEST} (solver)",
        ),
        (
            tuple(
                workload(name, f"r.example.com/moorings:0.2.0-x{DIGEST}")
                for name in CORE
            ),
            "parts.versions",
            "warn",
            "this command is 0.1.0",
        ),
        (
            (workload("nats", "nats:2.15.1"), *map(workload, CORE[1:])),
            "parts.images",
            "warn",
            "moved to other images: nats:2.15.1",
        ),
    ],
)
def test_an_installation_that_is_not_whole_is_found(
    workloads: tuple[Any, ...], check: str, level: str, words: str
) -> None:
    lines = worst(check_parts(cluster_facts(workloads=workloads), "0.1.0"))
    assert list(lines) == [check]
    assert lines[check].level == level
    assert words in lines[check].why


def test_daemons_and_what_was_scaled_to_nothing_are_counted_as_asked() -> None:
    daemons = workload("nodeagent")
    daemons["status"] = {"desiredNumberScheduled": 3, "numberReady": 2}
    stopped = workload("authcallout", ready=0)
    stopped["spec"]["replicas"] = 0
    facts = cluster_facts(workloads=(*map(workload, CORE), daemons, stopped))
    lines = worst(check_parts(facts, "0.1.0"))
    assert [line.why for line in lines.values()] == ["not ready: nodeagent (2 of 3)"]


@pytest.mark.parametrize(
    ("info", "check"),
    [
        ({"kubeletVersion": "v1.33.9"}, "parts.kubelets"),
        ({"kubeletVersion": "v1.38.0"}, "parts.kubelets"),
        ({"kubeletVersion": "v1.34.0"}, ""),
        ({"containerRuntimeVersion": "containerd://1.6.20"}, "parts.runtimes"),
        ({"containerRuntimeVersion": "containerd://1.7.2"}, ""),
        ({"containerRuntimeVersion": "cri-o://1.34"}, ""),
    ],
)
def test_nodes_that_cannot_give_devices_are_found(
    info: dict[str, str], check: str
) -> None:
    lines = worst(check_parts(cluster_facts(nodes=(node(**info),)), "0.1.0"))
    assert list(lines) == ([check] if check else [])


def test_a_lease_that_was_not_renewed_is_nobodys() -> None:
    assert check_lease(cluster_facts(), NOW).level == "ok"
    assert check_lease(cluster_facts(publisher_lease=None), NOW).level == "fail"
    later = datetime.fromtimestamp(NOW_S + 60, UTC)
    line = check_lease(cluster_facts(), later)
    assert (line.level, "2027-01-15T08:00:00" in line.why) == ("fail", True)


def test_a_solver_that_lets_its_lease_run_out_is_found() -> None:
    def found(seen: SolverSeen | None) -> CheckLine:
        return check_solver(bus_facts(solver=seen), NOW_S)

    assert found(solver_seen(NOW_S - 44)).level == "ok"
    silent = found(solver_seen(NOW_S - 46))
    assert silent.level == "fail"
    heard = show_time("2027-01-15T07:59:14+00:00")
    assert f"s-1 was last heard from at {heard}" in silent.why
    assert found(solver_seen(NOW_S - 46, lease_s=60)).level == "ok"
    # Who let go of the epoch has no lease left, and nobody took over.
    assert found(solver_seen(NOW_S - 31, lease_s=0)).level == "fail"
    assert "no solver has ever led in cluster local" in found(None).why


def test_a_submission_that_a_solver_does_not_decide_is_found() -> None:
    key = GangKey(Namespace("team-a"), GangUID("g-1"))

    def found(at_s: float) -> CheckLine:
        seen = SubmissionSeen(key=key, at_s=at_s)
        return check_decisions(bus_facts(undecided=seen), NOW_S)

    assert check_decisions(bus_facts(), NOW_S).level == "ok"
    assert found(NOW_S - 60).level == "ok"
    assert found(NOW_S + 5).level == "ok"
    late = found(NOW_S - 61)
    assert late.level == "warn"
    assert late.why == "gang team-a/g-1 waits for its first decision for 61 s"


def test_a_publisher_that_is_silent_on_the_bus_is_found() -> None:
    def leads(at: str) -> PublisherLeads:
        return PublisherLeads(cluster=ClusterName("local"), holder="p", at=at)

    def found(leader: PublisherLeads | None) -> list[str]:
        return [str(line.level) for line in check_leader(bus_facts(leader=leader), NOW)]

    assert found(None) == []
    assert found(leads("2027-01-15T07:59:00+00:00")) == ["ok"]
    assert found(leads("2027-01-15T07:00:00+00:00")) == ["fail"]
    assert found(leads("yesterday")) == ["fail"]


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
        ("", "", "have the agent's label, but no agent is heard from: a"),
        ("a", "ab", "agents are silent: no gang is placed there: b"),
        ("ac", "ac", "have an agent but no Node: nothing is published for them: c"),
        ("ab", "a", "is heard from, but announced nothing: b"),
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
    ("heard", "known", "words"),
    [
        ("ab", "ab", ""),
        ("", "", "nothing is announced, and no node agent is heard from"),
        ("a", "ab", "1 node announced devices, but their agents are silent"),
        ("ab", "a", "is heard from, but announced nothing: b"),
        ("", "ab", "agents are silent: no gang is placed there: a, b"),
    ],
)
def test_a_bus_alone_knows_its_agents(heard: str, known: str, words: str) -> None:
    """Where no cluster says which there should be."""
    bus = bus_facts(
        heard=frozenset(heard),
        inventories={NodeName(node): announced(node, node) for node in known},
    )
    lines = worst(check_agents_on_bus(bus))
    assert [words in line.why for line in lines.values()] == ([True] if words else [])


def test_agents_that_never_rest_are_named() -> None:
    said = {NodeName("a"): 1.0, NodeName("b"): 812.4}
    lines = worst(check_pace(bus_facts(said=said)))
    assert ["b (812 messages a second);" in line.why for line in lines.values()] == [
        True
    ]
    assert worst(check_pace(bus_facts(said={NodeName("a"): 1.0}))) == {}


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
    lines = worst(check_published_pools(cluster_facts(slices=tuple(made))))
    assert list(lines) == (["pools.cluster"] if words else [])
    assert all(f"{DRIVER}/p ({words})" in line.why for line in lines.values())


def test_two_who_publish_a_pool_by_turns_are_seen_whoever_was_last() -> None:
    """Each begins a generation of its own, so the newest shows one of them alone."""
    old, new = slices("p", local("a", "d")) + slices("p", local("b", "d"))
    new["spec"]["pool"]["generation"] = 2
    assert "pools.cluster" in worst(
        check_published_pools(cluster_facts(slices=(old, new)))
    )


def test_an_old_generation_of_one_publisher_is_no_finding() -> None:
    old, new = slices("p", local("a", "d")) + slices("p", local("a", "d"))
    new["spec"]["pool"]["generation"] = 2
    assert worst(check_published_pools(cluster_facts(slices=(old, new)))) == {}


def test_a_pool_of_two_agents_is_named_with_both() -> None:
    own = {NodeName(node): announced(node, node) for node in "ab"}
    assert worst(check_announced_pools(bus_facts(inventories=own))) == {}
    shared = {NodeName(node): announced(node, "p") for node in "ab"}
    line = worst(check_announced_pools(bus_facts(inventories=shared)))["pools.bus"]
    assert (line.level, "/p (by a, b)" in line.why) == ("fail", True)


def test_an_agent_that_speaks_of_pools_of_others_is_named() -> None:
    """It takes nothing from them, and is still no good sign."""
    both = {NodeName(node): announced(node, "n-1") for node in ("evil", "n-1")}
    line = worst(check_announced_pools(bus_facts(inventories=both)))["pools.bus"]
    assert (line.level, "/n-1 (by evil)" in line.why) == ("warn", True)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("a.example, b.example", ""),
        ("b.example,a.example", ""),
        ("a.example", "publisher a.example,b.example and solver a.example"),
        ("", "and solver any"),
    ],
)
def test_agents_speak_for_the_same_drivers_everywhere(solver: str, words: str) -> None:
    services = {"publisher": "a.example,b.example", "solver": solver}
    made = [workload(name) for name in CORE]
    for item in made:
        if said := services.get(item["metadata"]["name"]):
            variable = f"{item['metadata']['name'].upper()}_AGENT_DRIVERS"
            (container,) = item["spec"]["template"]["spec"]["containers"]
            container["env"] = [{"name": variable, "value": said}]
    lines = worst(check_parts(cluster_facts(workloads=tuple(made)), "0.1.0"))
    assert list(lines) == (["parts.agent-drivers"] if words else [])
    assert all(words in line.why for line in lines.values())
