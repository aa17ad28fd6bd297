"""What runs, in which version, and who leads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.fence import SolverSeen
from contracts.ids import ClusterName
from contracts.liveness import PublisherLeads
from moorings.doctor.check_parts import (
    check_leader,
    check_lease,
    check_parts,
    check_solver,
)
from moorings.doctor.findings import CheckLine
from tests.builders.doctor import (
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
        ((), "parts.workloads", "warn", "none of"),
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
            (*map(workload, CORE[:2]), workload("solver", "moorings:0.1.0-abc")),
            "parts.versions",
            "warn",
            "moorings:0.1.0-abc (solver)",
        ),
        (
            tuple(workload(name, "r.example.com/moorings:0.2.0-x") for name in CORE),
            "parts.versions",
            "warn",
            "this command is 0.1.0",
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
    assert "s-1 was last heard of at 2027-01-15T07:59:14+00:00" in silent.why
    assert found(solver_seen(NOW_S - 46, lease_s=60)).level == "ok"
    # Who let go of the epoch has no lease left, and nobody took over.
    assert found(solver_seen(NOW_S - 31, lease_s=0)).level == "fail"
    assert "no solver ever led in cluster local" in found(None).why


def test_a_publisher_that_is_silent_on_the_bus_is_found() -> None:
    def leads(at: str) -> PublisherLeads:
        return PublisherLeads(cluster=ClusterName("local"), holder="p", at=at)

    def found(leader: PublisherLeads | None) -> list[str]:
        return [str(line.level) for line in check_leader(bus_facts(leader=leader), NOW)]

    assert found(None) == []
    assert found(leads("2027-01-15T07:59:00+00:00")) == ["ok"]
    assert found(leads("2027-01-15T07:00:00+00:00")) == ["fail"]
    assert found(leads("yesterday")) == ["fail"]
