"""From one build to the next and back, service by service, while a gang runs.

The two builds are wheels of these sources with different versions, each in an
environment of its own: what is tried is the exchange of the services, not a change of
formats.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import cluster, image
from tests.lab.cluster import create_pods, is_running, name_of, template
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.server import ControlPlane
from tests.lab.environment import Environment
from tests.lab.nats_server import LabServer
from tests.lab.services import Process, eventually, solver
from tests.lab.waits import pods_of

LEADS = {"solver": '"epoch.claimed"', "publisher": '"lease.acquired"'}
"""What a service logs when it leads."""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Environment]:
    """Two environments, by version."""
    folder = tmp_path_factory.mktemp("builds")
    return {
        version: Environment.of(
            image.build_wheel(folder / version, version),
            folder / version / "venv",
            *image.extras(),
        )
        for version in ("0.1.0", "0.2.0")
    }


class Site:
    """NATS and the two services, each of one build at a time."""

    def __init__(self, plane: ControlPlane, nats: LabServer, folder: Path) -> None:
        self._plane, self._nats, self._folder = plane, nats, folder
        self._running: dict[str, Process] = {}
        self._started = 0

    async def roll(self, service: str, build: Environment) -> None:
        """Start a new one, end the old one, and wait until the new one leads."""
        self._started += 1
        name = f"{service}-{self._started}"
        if service == "solver":
            new = solver(self._nats.url, self._folder, name)
        else:
            new = cluster.publisher(self._nats.url, self._plane, self._folder, name)
        new.python = [str(build.folder / "bin" / "python"), "-I"]
        old = self._running.pop(service, None)
        new.start()
        self._running[service] = new
        if old is not None:
            assert await asyncio.to_thread(old.stop) == 0, old.log()

        async def leads() -> bool:
            return LEADS[service] in new.log()

        await eventually(leads, lambda: f"{name} leads: {new.log()[-2000:]}")

    def close(self) -> None:
        """End what runs."""
        for process in self._running.values():
            process.close()


@pytest.fixture
def site(
    control_plane: ControlPlane, nats_server: LabServer, tmp_path: Path
) -> Iterator[Site]:
    """A bus without services yet."""
    made = Site(control_plane, nats_server, tmp_path)
    yield made
    made.close()


async def held(there: Fleet, gang: str) -> dict[str, object]:
    """Wait until both pods of a gang run; gives what their claims hold, by claim."""
    pods = await pods_of(there, gang, 2, is_running)
    names = {name_of(pod) for pod in pods}
    claims = await there.kube.list(RESOURCE, "ResourceClaim", there.namespace)
    return {
        claim["metadata"]["uid"]: claim["status"]["allocation"]
        for claim in claims
        if {user["name"] for user in claim["status"]["reservedFor"]} & names
    }


def replay_last(build: Environment, server: str) -> None:
    """Solve the last recorded solve again, whichever build recorded it."""
    told = {"MOORINGS_SERVER": server}
    listed = build.run("moorings", "solves", "list", "-o", "json", **told)
    assert listed.returncode == 0, listed.stderr
    solve = json.loads(listed.stdout)[-1]["opened"]["solve"]
    again = build.run("moorings", "replay", solve, **told)
    assert again.returncode == 0, again.stdout + again.stderr


async def test_services_are_exchanged_while_a_gang_runs(
    kube: Kube,
    namespace: str,
    site: Site,
    builds: dict[str, Environment],
    nats_server: LabServer,
) -> None:
    """Forth and back: devices stay, new gangs are decided, records are read."""
    async with fleet.running(kube, namespace) as there:
        await template(there, count=1)
        kept: dict[str, dict[str, object]] = {}
        for number, version in enumerate(("0.1.0", "0.2.0", "0.1.0")):
            for service in LEADS:
                await site.roll(service, builds[version])
            if kept:
                build = builds[version]
                await asyncio.to_thread(replay_last, build, nats_server.url)
            gang = f"gang-{number}"
            await create_pods(there, gang, range(2), size=2)
            kept[gang] = await held(there, gang)
            assert len(kept[gang]) == 2
            for name, allocations in kept.items():
                assert await held(there, name) == allocations
