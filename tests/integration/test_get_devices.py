"""Every device of a cluster in one list, also those that Moorings does not give out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from runtime.bus.bus import Bus
from tests.lab.command_line import moorings
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.nats_server import LabServer


@pytest.fixture
def empty_bus(nats_server: LabServer, bus: Bus) -> str:
    """Where a bus is on which nothing was said yet."""
    assert bus.connected
    return nats_server.url


async def test_devices_of_foreign_drivers_are_read_from_the_cluster(
    kube: Kube,
    namespace: str,
    control_plane: ControlPlane,
    empty_bus: str,
    tmp_path: Path,
) -> None:
    """The bus knows none of them; of their health nobody says anything."""
    async with fleet.running(kube, namespace, ("a",)) as site:

        async def ask(*options: str) -> CompletedProcess[str]:
            return await asyncio.to_thread(
                moorings,
                *("get", "devices", f"--node={site.a}", "-o", "json", *options),
                home=tmp_path,
                server=empty_bus,
            )

        async def devices(*options: str) -> list[dict[str, Any]]:
            said = await ask(*options)
            assert said.returncode == 0, said.stderr
            rows: list[dict[str, Any]] = json.loads(said.stdout)
            return rows

        unknown = await ask()
        assert unknown.returncode == 3
        assert f"no node named '{site.a}'" in unknown.stderr
        where = f"--kubeconfig={control_plane.kubeconfig()}"
        rows = await devices(where, "--free")
        assert [(row["name"], row["driver"], row["health"]) for row in rows] == [
            (f"dev-{number}", site.driver, "") for number in range(4)
        ]
        assert await devices(where, "--held") == []
