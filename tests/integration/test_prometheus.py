"""A real Prometheus reads a solver: our boards draw it, every rule is evaluated."""

from __future__ import annotations

from pathlib import Path

from contracts.messages import GangAllocated, GangPending
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from tests.lab.nats_server import LabServer
from tests.lab.prometheus import Prometheus, board_queries, job, prometheus
from tests.lab.services import eventually, is_ready, running, solver, submit
from tests.lab.two_nodes import is_decided, two_nodes, wanted

WITHIN_S = 90.0
ELSEWHERE = {
    "moorings_foreign_devices",
    "moorings_writes_total",
    "moorings_devices",
    "moorings_drift_devices",
    "moorings_dra_operations_duration_seconds",
    "moorings_dra_prepared_claims",
    "moorings_announcements_total",
    'name="groups"',
}
"""What other services have: tests/integration/test_kubernetes_metrics.py."""


async def test_boards_draw_a_solver_and_rules_are_evaluated(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Each query gives lines; those of other services are only understood."""
    address = f"127.0.0.1:{find_free_port()}"
    process = solver(
        nats_server.url, tmp_path, SOLVER_HEALTH_ADDRESS=address, SOLVER_CENSUS_S="1"
    )
    await two_nodes(bus)
    with prometheus(tmp_path, [job("moorings", address)]) as found:
        async with running(process):
            await _watch(bus, found, address)
            rules = found.rules()
    assert rules
    assert {rule["health"] for rule in rules} == {"ok"}, rules


async def _watch(bus: Bus, found: Prometheus, address: str) -> None:
    """Let gangs be decided until every board has its lines."""
    await eventually(lambda: is_ready(address), "ready", WITHIN_S)

    def has_counted() -> bool:
        try:
            return bool(found.query("moorings_class_devices"))
        except OSError:
            return False

    await eventually(has_counted, "scraped", WITHIN_S)
    # What is counted from now on has a rate.
    first, second = wanted(1, 2, 2), wanted(2, 1, 9)
    await submit(bus, first)
    await eventually(lambda: is_decided(bus, first, GangAllocated), "in", WITHIN_S)
    await submit(bus, second)
    await eventually(lambda: is_decided(bus, second, GangPending), "out", WITHIN_S)
    missing = dict(board_queries("5s"))

    def is_drawn() -> bool:
        for where, expression in tuple(missing.items()):
            if found.query(expression):
                missing.pop(where, None)
        return all(map(_is_of_others, missing.values()))

    await eventually(is_drawn, lambda: str(missing), WITHIN_S)


def _is_of_others(expression: str) -> bool:
    return any(name in expression for name in ELSEWHERE)
