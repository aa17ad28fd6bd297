"""One leader at a time by a Lease on a real API server."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from publisher.kube.lease import LeaderLease
from runtime.errors import RestartError
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import LEASE
from tests.conftest import OwnControlPlane
from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually

QUICK_S = 3.0
OTHER = """
import asyncio, sys
from runtime.errors import RestartError
from runtime.kube.api import KubernetesApi
from publisher.kube.former import describe_process
from publisher.kube.lease import LeaderLease

async def main(kubeconfig, namespace, duration_s, knows):
    process = describe_process("") if knows else None
    async with KubernetesApi.open(kubeconfig) as api:
        key = f"{namespace}/l"
        lease = LeaderLease(api, key, "other", float(duration_s), process)
        async for lost in lease.terms(asyncio.Event()):
            print("began", flush=True)
            await lost.wait()
            print("ended", lease.leads, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Terms:
    """The terms of a candidate of this process."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.told: list[str] = []
        self.leads = False

    async def run(self, api: KubernetesApi, namespace: str, name: str) -> None:
        """Be a candidate until `stop`."""
        lease = LeaderLease(api, f"{namespace}/l", name, QUICK_S)
        async for lost in lease.terms(self.stop):
            self.told.append("began")
            self.leads = lease.leads
            await lost.wait()
            self.leads = lease.leads and not self.stop.is_set()
            self.told.append("ended")

    def reached(self, what: str, times: int) -> Callable[[], Awaitable[bool]]:
        """Ask whether something happened so often."""

        async def ask() -> bool:
            return self.told.count(what) == times

        return ask


@asynccontextmanager
async def somebody_else(
    control_plane: ControlPlane,
    namespace: str,
    duration_s: float = QUICK_S,
    *,
    knows: bool = False,
) -> AsyncIterator[Process]:
    """Run a candidate in a process of its own, which says when it leads.

    `knows`: it sees who is dead on this host.
    """
    kubeconfig = str(control_plane.kubeconfig())
    options = (str(duration_s), "yes" if knows else "")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OTHER, kubeconfig, namespace, *options),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def line(process: Process, limit_s: float = 60.0) -> str:
    """Read what it says next, besides its log."""
    assert process.stdout is not None
    async with asyncio.timeout(limit_s):
        while text := (await process.stdout.readline()).decode().strip():
            if text.startswith(("began", "ended")):
                return text
    raise AssertionError("it ended")


@asynccontextmanager
async def candidate(
    control_plane: ControlPlane, namespace: str, name: str
) -> AsyncIterator[Terms]:
    terms = Terms()
    async with KubernetesApi.open(str(control_plane.kubeconfig())) as api:
        task = asyncio.create_task(terms.run(api, namespace, name))
        try:
            yield terms
        finally:
            terms.stop.set()
            await task


async def holder(kube: Kube, namespace: str) -> str:
    lease = await kube.get(named(LEASE.api_version, "Lease", "l", namespace))
    return str(lease["spec"]["holderIdentity"])


async def test_a_frozen_leader_is_followed_and_knows_it(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    """And one that stopped cleanly, too; a living one is left alone."""
    async with somebody_else(control_plane, namespace) as other:
        assert await line(other) == "began"
        async with candidate(control_plane, namespace, "ours") as ours:
            await asyncio.sleep(1)
            assert not ours.told
            other.send_signal(signal.SIGSTOP)
            await eventually(ours.reached("began", 1), "we lead")
            assert await holder(kube, namespace) == "ours"
            other.send_signal(signal.SIGCONT)
            assert await line(other) == "ended False"
            assert ours.leads
        assert await line(other) == "began"
        assert await holder(kube, namespace) == "other"
    async with candidate(control_plane, namespace, "ours") as ours:
        await eventually(ours.reached("began", 1), "we lead after a killed leader")
    assert await holder(kube, namespace) == ""


async def test_the_lease_of_a_dead_process_of_this_host_is_taken_at_once(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Killed again and again, each leads; a minute passes for none."""
    for _ in range(4):
        async with somebody_else(control_plane, namespace, 60.0, knows=True) as other:
            assert await line(other) == "began"
            other.kill()
            await other.wait()


async def test_two_that_live_on_one_host_under_one_name_never_both_lead(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A frozen one lives as well; the other follows once it is dead."""
    async with (
        somebody_else(control_plane, namespace, 60.0, knows=True) as first,
        somebody_else(control_plane, namespace, 60.0, knows=True) as second,
    ):
        both = {
            asyncio.create_task(line(process)): process for process in (first, second)
        }
        done, waiting = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        leader, standby = both[done.pop()], waiting.pop()
        leader.send_signal(signal.SIGSTOP)
        assert not (await asyncio.wait((standby,), timeout=8.0))[0]
        leader.kill()
        assert await asyncio.wait_for(standby, 20.0) == "began"


async def test_a_leader_without_an_api_server_ends_in_time(
    own_control_plane: OwnControlPlane,
) -> None:
    """By itself, unasked; and leads again when it is back."""
    control_plane = own_control_plane(Options(programs=(ETCD, API_SERVER)))
    async with candidate(control_plane, "default", "ours") as ours:
        await eventually(ours.reached("began", 1), "we lead")
        control_plane.programs[API_SERVER].pause()
        await eventually(ours.reached("ended", 1), "the term ends")
        assert not ours.leads
        control_plane.programs[API_SERVER].resume()
        await eventually(ours.reached("began", 2), "we lead again")


async def test_whoever_leads_a_restored_cluster_starts_again(
    own_control_plane: OwnControlPlane,
) -> None:
    """What it has read did not happen; one that stands by notices as well."""
    plane = own_control_plane(Options(programs=(ETCD, API_SERVER)))
    async with KubernetesApi.open(str(plane.kubeconfig())) as api:
        leading, standing_by = Terms(), Terms()
        tasks = [asyncio.create_task(leading.run(api, "default", "leads"))]
        await eventually(leading.reached("began", 1), "it leads")
        tasks += [asyncio.create_task(standing_by.run(api, "default", "stands by"))]
        plane.save_store()
        await asyncio.sleep(2 * QUICK_S)
        await plane.restore_store()
        told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in told] == [RestartError] * 2, told
    assert not leading.leads
