"""The board of Kubernetes' own components, evaluated on the real ones.

Prometheus scrapes kube-controller-manager, kube-scheduler and kubelet while pods with
claims from a template are decided, bound, prepared by our agent and ended. The queries
are those of Kubernetes' guide for administrators of devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import CONTROLLER_MANAGER, SCHEDULER
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node import light_site
from tests.lab.node.light_site import LightSite
from tests.lab.prometheus import KUBERNETES, Prometheus, board_queries, job, prometheus
from tests.lab.services import eventually

WITHIN_S = 90.0
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
    with light_site.running(control_plane, kubelet_programs, folder) as site:
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
