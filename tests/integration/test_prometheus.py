"""A real Prometheus reads a solver: every board draws it, every rule is evaluated."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from contracts.messages import GangAllocated, GangPending
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from tests.lab.manifests import K8S
from tests.lab.nats_server import LabServer
from tests.lab.promtool import find_prometheus
from tests.lab.services import eventually, is_ready, running, solver, submit
from tests.lab.two_nodes import is_decided, two_nodes, wanted

MONITORING = K8S / "components" / "monitoring"
WITHIN_S = 90.0
ELSEWHERE = {
    "moorings_foreign_devices",
    "moorings_writes_total",
    "moorings_placements_voided_total",
    "moorings_devices",
    "moorings_drift_devices",
    "moorings_dra_operations_duration_seconds",
    "moorings_dra_prepared_claims",
    "moorings_announcements_total",
    'name="groups"',
}
"""What a solver that lost nothing does not have."""


class Prometheus:
    """One that scrapes a service every second, and what it says."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Evaluate an expression now."""
        answer = self._get("query", query=expression)
        found: list[dict[str, Any]] = answer["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """List the rules with their health."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        query = urllib.parse.urlencode(parameters)
        url = f"http://{self._address}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=10) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        data: dict[str, Any] = answer["data"]
        return data


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Prometheus]:
    """Run one while the block runs, with our rules."""
    program = find_prometheus()
    spec = yaml.safe_load((MONITORING / "moorings-prometheusrule.yaml").read_text())
    (folder / "rules.yaml").write_text(yaml.safe_dump(spec["spec"]))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {"job_name": "moorings", "static_configs": [{"targets": [target]}]}
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{find_free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(address)
    finally:
        process.kill()
        process.wait()


def queries() -> Iterator[tuple[str, str]]:
    """Go through (panel, expression) of all boards."""
    for path in sorted((MONITORING / "boards").iterdir()):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                where = f"{path.stem}: {panel['title']}"
                yield where, target["expr"].replace("$__rate_interval", "5s")


async def test_boards_draw_a_solver_and_rules_are_evaluated(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Each query gives lines; those of other services are only understood."""
    address = f"127.0.0.1:{find_free_port()}"
    process = solver(
        nats_server.url, tmp_path, SOLVER_HEALTH_ADDRESS=address, SOLVER_CENSUS_S="1"
    )
    await two_nodes(bus)
    with prometheus(tmp_path, address) as found:
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
    missing = dict(queries())

    def is_drawn() -> bool:
        for where, expression in tuple(queries()):
            if found.query(expression):
                missing.pop(where, None)
        return all(map(_is_of_others, missing.values()))

    await eventually(is_drawn, lambda: str(missing), WITHIN_S)


def _is_of_others(expression: str) -> bool:
    return any(name in expression for name in ELSEWHERE)
