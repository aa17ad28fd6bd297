"""The control plane of the tests does what other tests rely on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import OwnControlPlane
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.options import PROGRAMS, Options, User


def runs(pod: Json) -> bool:
    return bool(pod["status"]["phase"] == "Running")


async def test_bound_pod_runs_and_gated_pod_gets_its_claim(
    kube: Kube, namespace: str
) -> None:
    """One request makes a usable node; template claims of gated pods are made."""
    only = {"test": namespace}
    await kube.create(objects.template(namespace, "t", objects.requests("none")))
    plain = objects.pod(namespace, "plain", node_selector=only)
    gated = objects.pod(namespace, "gated", templates={"d": "t"}, gated=True)
    async with kubelet.running(kube, [objects.node(f"{namespace}-a", only)]) as nodes:
        plain, gated = await kube.create(plain), await kube.create(gated)
        plain = await kube.until(plain, runs)
        nodes.finish(plain)
        await kube.until(plain, lambda p: p["status"]["phase"] == "Succeeded")
        gated = await kube.until(
            gated, lambda p: "resourceClaimStatuses" in p["status"]
        )
        name = gated["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        claim = named(objects.RESOURCE, "ResourceClaim", name, namespace)
        assert (await kube.get(claim))["spec"]["devices"]["requests"]
        await kube.delete(plain)
        await kube.until_gone(plain)


async def test_every_program_can_be_killed_and_comes_back(
    own_control_plane: OwnControlPlane,
) -> None:
    """Ports and data stay; users are who they were; pods go on to be bound and run."""
    control_plane = own_control_plane(Options(users=(User("author"),)))
    async with control_plane.client() as kube, kube.namespace() as namespace:
        async with kubelet.running(kube, [objects.node("a")]):
            for name in PROGRAMS:
                control_plane.kill(name)
                await control_plane.restart(name)
                pod = objects.pod(namespace, f"after-{name}")
                await kube.until(await kube.create(pod), runs)
        author = control_plane.client(control_plane.token("author"))
        account = named("v1", "ServiceAccount", "default", namespace)
        async with author:
            with pytest.raises(RefusedError, match='User "author" cannot get') as no:
                await author.get(account)
        assert no.value.status == 403


DIES = """
import sys, time
from pathlib import Path
from tests.lab.controlplane.options import ETCD, Options
from tests.lab.controlplane.server import running
binaries, folder = map(Path, sys.argv[1:])
with running(binaries, folder, Options(programs=(ETCD,))) as control_plane:
    print(control_plane.programs[ETCD].pid, flush=True)
    time.sleep(600)
"""


def test_programs_die_with_the_process_that_started_them(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """However it ends: nothing of a killed test run is left."""
    folders = str(control_plane_programs), str(tmp_path)
    command = [sys.executable, "-c", DIES, *folders]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        etcd = Path("/proc") / starter.stdout.readline().strip() / "cmdline"
        assert b"etcd" in etcd.read_bytes()
        starter.kill()
    deadline = time.monotonic() + 30
    while not ended(etcd):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(command_line: Path) -> bool:
    """Tell whether a process is gone, or dead and not yet buried."""
    try:
        return not command_line.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
