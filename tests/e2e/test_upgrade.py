"""From one build to the next and back, service by service, while a gang runs.

The builds are this checkout and a wheel of it with another version, in an environment
of its own: what is tried is the exchange of the services, not a change of formats.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import cluster, image
from tests.lab.cluster import create_pods, is_running, name_of, template
from tests.lab.command_line import MAIN
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
Build = list[str]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Build]:
    """This one and the next: what runs their Python."""
    folder = tmp_path_factory.mktemp("next")
    wheel = image.build_wheel(folder, "0.2.0")
    made = Environment.of(wheel, folder / "venv", *image.extras())
    return [sys.executable], [str(made.folder / "bin" / "python"), "-I"]


class Site:
    """NATS and the two services, each of one build at a time."""

    def __init__(self, plane: ControlPlane, nats: LabServer, folder: Path) -> None:
        self._plane, self._nats, self._folder = plane, nats, folder
        self._running: dict[str, Process] = {}
        self._started = 0

    async def roll(self, service: str, build: Build) -> None:
        """Start a new one, end the old one, and wait until the new one leads."""
        self._started += 1
        name = f"{service}-{self._started}"
        if service == "solver":
            new = solver(self._nats.url, self._folder, name)
        else:
            new = cluster.publisher(self._nats.url, self._plane, self._folder, name)
        new.python = build
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


def replay_last(build: Build, server: str) -> None:
    """Solve the last recorded solve again, whichever build recorded it."""

    def moorings(*words: str) -> str:
        done = subprocess.run(
            [*build, *MAIN[1:], *words],
            env={**os.environ, "MOORINGS_SERVER": server},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    listed = json.loads(moorings("solves", "list", "-o", "json"))
    moorings("replay", listed[-1]["opened"]["solve"])


async def test_services_are_exchanged_while_a_gang_runs(
    kube: Kube,
    namespace: str,
    site: Site,
    builds: tuple[Build, Build],
    nats_server: LabServer,
) -> None:
    """Forth and back: devices stay, new gangs are decided, records are read."""
    async with fleet.running(kube, namespace) as there:
        await template(there, count=1)
        kept: dict[str, dict[str, object]] = {}
        this, later = builds
        for number, build in enumerate((this, later, this)):
            for service in LEADS:
                await site.roll(service, build)
            if kept:
                await asyncio.to_thread(replay_last, build, nats_server.url)
            gang = f"gang-{number}"
            await create_pods(there, gang, range(2), size=2)
            kept[gang] = await held(there, gang)
            assert len(kept[gang]) == 2
            for name, allocations in kept.items():
                assert await held(there, name) == allocations
