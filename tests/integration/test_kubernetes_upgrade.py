"""An API server that is upgraded while a publisher runs."""

from __future__ import annotations

import asyncio

import pytest

from publisher.kube.discovery import watch_served
from runtime.errors import RestartError
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import VERSIONS
from tests.conftest import OwnControlPlane
from tests.lab.controlplane.options import API_SERVER, ETCD, Options


async def test_kinds_that_an_upgrade_brings_are_noticed(
    own_control_plane: OwnControlPlane,
) -> None:
    """A restart of the same release is none."""
    older = Options(programs=(ETCD, API_SERVER), emulated_version="1.35")
    plane = own_control_plane(older)
    async with KubernetesApi.open(str(plane.kubeconfig())) as api:
        chosen = await api.fetch_served_kinds()
        assert chosen.device_taint_rule is None
        assert chosen.release == "1.35"
        stop = asyncio.Event()
        watching = asyncio.create_task(
            watch_served(api, VERSIONS, chosen, stop, every_s=0.05)
        )
        plane.kill(API_SERVER)
        await plane.restart(API_SERVER)
        assert await api.fetch_served_kinds() == chosen
        await asyncio.sleep(0.3)
        assert not watching.done()
        plane.kill(API_SERVER)
        plane.options = Options(programs=older.programs)
        await plane.restart(API_SERVER)
        with pytest.raises(RestartError, match=r"DeviceTaintRule resource\.k8s\.io/v1"):
            async with asyncio.timeout(30):
                await watching
