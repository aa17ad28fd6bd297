"""The boards of what runs beside a real control plane and kubelet.

Prometheus scrapes kube-controller-manager, kube-scheduler and kubelet, our publisher
and our node agent, while pods with claims from a template are decided, bound, prepared
and ended. The queries of Kubernetes' own board are those of its guide for
administrators of devices; those of a solver are drawn in test_prometheus.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorings.local.process import find_free_port
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import CONTROLLER_MANAGER, SCHEDULER
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node import light_site
from tests.lab.node.light_site import LightSite
from tests.lab.prometheus import KUBERNETES, Prometheus, board_queries, job, prometheus
from tests.lab.services import eventually

WITHIN_S = 90.0
PUBLISHER, AGENT = (f"127.0.0.1:{find_free_port()}" for _ in range(2))
OURS = re.compile(
    r"moorings_(foreign_devices|writes_total|placements_voided_total|devices|"
    r"drift_devices|dra_operations|dra_prepared_claims|announcements_total)"
    r'|name="groups"'
)
"""What a publisher and a node agent draw, or a solver beside them."""
PANELS = 8
OTHERS = "others.example.com"
GUIDE = 9
"""Queries of the guide; the board has no others."""


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane,
    kubelet_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LightSite]:
    """A node of a real kubelet beside a whole Moorings."""
    folder = tmp_path_factory.mktemp("metrics")
    with light_site.running(
        control_plane,
        kubelet_programs,
        folder,
        PUBLISHER_HEALTH_ADDRESS=PUBLISHER,
        PUBLISHER_OWNED_DRIVERS="nobody.example.com",
    ) as site:
        yield site


async def test_every_query_of_the_guide_draws_a_line_on_real_components(
    running: LightSite,
    control_plane: ControlPlane,
    kube: Kube,
    namespace: str,
    tmp_path: Path,
) -> None:
    """A number each, over five minutes; and the alert on depth is evaluated."""
    programs, token = control_plane.programs, control_plane.token()
    addresses = {
        name: programs[name].url.removeprefix("https://")
        for name in (CONTROLLER_MANAGER, SCHEDULER)
    }
    jobs = [job(name, found, token=token) for name, found in addresses.items()]
    jobs.append(job("kubelet", running.node.address, token=token))
    async with running.of(kube, namespace) as site:
        with prometheus(tmp_path, jobs) as found:
            await eventually(lambda: is_scraped(found, len(jobs)), "scraped", WITHIN_S)
            missing = dict(board_queries("5m", KUBERNETES))
            assert len(missing) == GUIDE
            async with site.running(site.agent()):
                # What is counted for the first time has a rate from the second time on.
                for name in ("first", "second"):
                    await site.end(await site.until_runs(await site.start(name)))
                    await eventually(lambda: has_seen(found), "it is seen", WITHIN_S)

                def is_drawn() -> bool:
                    for where, expression in tuple(missing.items()):
                        if has_numbers(found, expression):
                            del missing[where]
                    return not missing

                await eventually(is_drawn, lambda: str(missing), WITHIN_S)
            rules = {rule["name"]: rule for rule in found.rules()}
    assert rules["MooringsClaimsWaitForController"]["health"] == "ok"


async def test_every_panel_of_publisher_and_agent_has_a_line(
    running: LightSite, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """Without a fault too: a rate of what never happened is 0."""
    jobs = [job("publisher", PUBLISHER), job("nodeagent", AGENT)]
    others = objects.resource_slice(OTHERS, running.node.name, [{"name": "theirs"}])
    await kube.create(others)
    async with running.of(kube, namespace) as site:
        with prometheus(tmp_path, jobs) as found:
            missing = {
                where: query
                for where, query in board_queries("5s")
                if OURS.search(query) and "voided" not in query
            }
            assert len(missing) > PANELS
            async with site.running(site.agent(NODEAGENT_HEALTH_ADDRESS=AGENT)):
                await eventually(lambda: is_scraped(found, len(jobs)), "up", WITHIN_S)
                await site.end(await site.until_runs(await site.start("first")))

                def is_drawn() -> bool:
                    for where, expression in tuple(missing.items()):
                        if found.query(expression):
                            del missing[where]
                    return not missing

                await eventually(is_drawn, lambda: str(missing), WITHIN_S)
    await kube.delete(others)


def is_scraped(found: Prometheus, jobs: int) -> bool:
    """True if every target has answered."""
    try:
        (up,) = found.query("sum(up)") or [{"value": (0, "0")}]
    except OSError:
        return False
    return float(up["value"][1]) == jobs


def has_seen(found: Prometheus) -> bool:
    """True if kubelet's histograms of drivers are scraped."""
    return bool(found.query("dra_grpc_operations_duration_seconds_count"))


def has_numbers(found: Prometheus, expression: str) -> bool:
    """True if an expression has a line, and nothing in it is undefined."""
    values = [float(line["value"][1]) for line in found.query(expression)]
    return bool(values) and not any(map(math.isnan, values))
