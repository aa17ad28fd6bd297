"""What services answer to Prometheus while they do their work."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from contracts.gang import Gang
from contracts.ids import GangUID, Namespace
from contracts.messages import (
    AllocationLost,
    AllocationWritten,
    ConfirmationMessage,
    GangAllocated,
    GangPending,
    GatesOpened,
)
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from solver.service.worker import SolveWorker
from tests.lab.metrics import Scraped, scrape
from tests.lab.nats_server import LabServer
from tests.lab.promtool import promtool
from tests.lab.services import (
    CLUSTER,
    Process,
    confirm,
    eventually,
    is_ready,
    running,
    solver,
    submit,
)
from tests.lab.two_nodes import is_decided, two_nodes, wanted

WITHIN_S = 90.0
FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
nodes:
- shape: n
  count: 2
  devices: [{driver: gpu.example.com, count: 4, name: "g-{index}"}]
"""


@pytest.fixture
def address() -> str:
    return f"127.0.0.1:{find_free_port()}"


async def test_the_solver_counts_what_it_decides(
    bus: Bus, nats_server: LabServer, tmp_path: Path, address: str
) -> None:
    """Two gangs: one is decided, written, opened; one waits, for too few devices."""
    await two_nodes(bus)
    first, second = wanted(1, 2, 2), wanted(2, 1, 9)
    process = solver(
        nats_server.url, tmp_path, SOLVER_HEALTH_ADDRESS=address, SOLVER_CENSUS_S="1"
    )
    async with running(process):
        await eventually(lambda: is_ready(address), "ready", WITHIN_S)
        await submit(bus, first)
        await eventually(lambda: is_decided(bus, first, GangAllocated), "in", WITHIN_S)
        await submit(bus, second)
        await eventually(lambda: is_decided(bus, second, GangPending), "out", WITHIN_S)

        async def is_held() -> bool:
            found = await scrape(address)
            return found.of("moorings_class_devices", state="held") == 4

        await eventually(is_held, process.log, WITHIN_S)
        found = await scrape(address)
        _check_work(found)
        _check_cluster(found)
        # With open gates it holds what Kubernetes says, which here is nothing.
        for message in _confirm_and_lose(first):
            await confirm(bus, message)

        async def is_lost() -> bool:
            lost = await scrape(address)
            name = "moorings_placements_voided_total"
            return lost.of(name, kind="AllocationLost") == 1

        await eventually(is_lost, process.log, WITHIN_S)
        found = await scrape(address)
        _check_gangs(found)
    promtool("check", "metrics", text=found.text)


async def test_a_node_agent_counts_its_devices(
    nats_server: LabServer, tmp_path: Path, address: str
) -> None:
    """By driver and health, of all the nodes that it speaks for."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    agent = Process(
        "nodeagent",
        tmp_path / "agent.log",
        NODEAGENT_SERVERS=nats_server.url,
        NODEAGENT_FLEET=str(tmp_path / "fleet.yaml"),
        NODEAGENT_HEALTH_ADDRESS=address,
    )
    async with running(agent):
        await eventually(lambda: is_ready(address), agent.log, WITHIN_S)

        async def is_counted() -> bool:
            found = await scrape(address)
            name, driver = "moorings_devices", "gpu.example.com"
            healthy = found.of(name, driver=driver, health="Healthy")
            return healthy == 8 == found.of(name, driver=driver)

        await eventually(is_counted, agent.log, WITHIN_S)
        found = await scrape(address)
    assert found.of("moorings_announcements_total") == 2
    promtool("check", "metrics", text=found.text)


def test_a_worker_that_is_started_again_is_counted() -> None:
    """Not the first one, and not one that runs."""

    def restarts() -> float:
        name = "moorings_worker_restarts_total"
        return REGISTRY.get_sample_value(name) or 0.0

    before = restarts()
    worker = SolveWorker(memory_bytes=1 << 30, guard_s=10.0)
    try:
        worker.start()
        worker.start()
        assert restarts() == before
        worker.stop()
        worker.start()
        assert restarts() == before + 1
    finally:
        worker.stop()


def _confirm_and_lose(asked: Gang) -> list[ConfirmationMessage]:
    namespace, uid = Namespace(asked.metadata.namespace), GangUID(asked.metadata.uid)
    written = AllocationWritten(
        cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1
    )
    opened = GatesOpened(
        cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1, state=0
    )
    lost = AllocationLost(
        cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1, reason="taken"
    )
    return [written, opened, lost]


def _check_gangs(found: Scraped) -> None:
    name = "moorings_gang_stage_duration_seconds_count"
    counts = {
        stage: found.of(name, stage=stage, queue="team-a", priority="0")
        for stage in ("decision", "allocated", "written", "gates")
    }
    assert counts == {"decision": 2, "allocated": 1, "written": 1, "gates": 1}
    assert found.of("moorings_decisions_total", verdict="allocated") >= 1
    assert found.of("moorings_decisions_total", verdict="none") >= 1


def _check_work(found: Scraped) -> None:
    name = "moorings_solve_stage_duration_seconds_count"
    for stage in ("snapshot", "selectors", "problem", "model", "results", "judge"):
        assert found.of(name, stage=stage) >= 2, stage
    assert found.of("moorings_batch_gangs_count") >= 2
    assert found.of("moorings_solve_gap_ratio_count") >= 1
    assert found.of("workqueue_adds_total", name="gangs") >= 2
    assert found.of("workqueue_work_duration_seconds_count", name="gangs") >= 2
    assert found.of("workqueue_depth", name="gangs") == 0
    assert found.of("leader_election_master_status", name="solver") == 1


def _check_cluster(found: Scraped) -> None:
    assert found.of("moorings_gangs_waiting") == 1
    assert found.of("moorings_oldest_waiting_seconds") > 0
    devices = {
        state: found.of("moorings_class_devices", state=state)
        for state in ("free", "held", "unhealthy")
    }
    assert devices == {"free": 4, "held": 4, "unhealthy": 0}
    assert found.of("moorings_class_nodes", free="4") == 1
    assert found.of("moorings_class_nodes", free="8") == 0
    assert found.of("moorings_nodes", state="present") == 2
    for stream in ("DEC", "SUBMIT", "INV"):
        assert found.of("moorings_stream_bytes", stream=stream) > 0
        limit = found.of("moorings_stream_limit_bytes", stream=stream)
        assert limit > found.of("moorings_stream_bytes", stream=stream)
        assert found.of("moorings_stream_lag_messages", stream=stream) == 0
    assert found.of("moorings_bus_connected") == 1
