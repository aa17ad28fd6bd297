"""How many claims a second can be allocated on a real API server, by which writes?

A bare loop: for each claim the finalizer, then allocation and reservation in its
status, reserved for a real gated pod; nothing decides and nothing is verified. etcd,
kube-apiserver, kube-controller-manager and kube-scheduler run on the same machine.
A row is a client and a form: through the publisher's own transport or by plain aiohttp,
whole objects (PUT) or what changes (a merge patch with uid and resourceVersion); a
column is how many claims are in flight: claims a second, the median of the rounds.
On a busy machine compare the CPU milliseconds a claim, of ours and of the servers.

    python -m benchmarks.cluster.claim_writes [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from benchmarks.report import Row, arguments, cpu_seconds, report
from contracts.names import FINALIZER, GATE
from runtime.kube.api import PUBLISHER, Json
from runtime.kube.transport import Transport
from tests.lab.controlplane import objects, programs, server
from tests.lab.controlplane.client import Kube, named, path_of
from tests.lab.controlplane.options import Options

IN_FLIGHT = (8, 16, 32)
ROUNDS = {"small": 2, "full": 5}
CLAIMS = 400
MERGE = "application/merge-patch+json"
Send = Callable[[str, str, bytes, str], Awaitable[bytes]]
"""Sends a body of a content type to a path by a method."""
Write = Callable[[Send, Json, Json], Awaitable[Json]]
"""Writes a part (`metadata` or `status`) of an object and gives it as it is then."""


@asynccontextmanager
async def through_transport(kubeconfig: Path, limit: int) -> AsyncIterator[Send]:
    """Send as the publisher does."""
    async with Transport.open(str(kubeconfig), "", limit, PUBLISHER) as transport:

        async def send(method: str, path: str, body: bytes, form: str) -> bytes:
            return await transport.call("write", method, path, body=body, form=form)

        yield send


@asynccontextmanager
async def through_aiohttp(
    plane: server.ControlPlane, limit: int
) -> AsyncIterator[Send]:
    """Send with nothing in between."""
    slots = asyncio.Semaphore(limit)
    trusted = ssl.create_default_context(cafile=str(plane.authority))

    async def send(method: str, path: str, body: bytes, form: str) -> bytes:
        kind = {"Content-Type": form, "Accept-Encoding": "identity"}
        async with (
            slots,
            session.request(method, path, data=body, headers=kind) as answer,
        ):
            answer.raise_for_status()
            return await answer.read()

    headers = {"Authorization": f"Bearer {plane.token()}"}
    connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
    async with aiohttp.ClientSession(
        plane.url, connector=connector, headers=headers
    ) as session:
        yield send


async def put(send: Send, claim: Json, part: Json) -> Json:
    """Write the whole object."""
    subresource = "status" if "status" in part else ""
    body = {**claim, **part}
    if "metadata" in part:
        body["metadata"] = {**claim["metadata"], **part["metadata"]}
    path = path_of(claim, subresource)
    answer = await send("PUT", path, msgspec.json.encode(body), "application/json")
    written: Json = msgspec.json.decode(answer)
    return written


async def patch(send: Send, claim: Json, part: Json) -> Json:
    """Write what changes."""
    observed = {name: claim["metadata"][name] for name in ("uid", "resourceVersion")}
    body = {**part, "metadata": {**observed, **part.get("metadata", {})}}
    path = path_of(claim, "status" if "status" in part else "")
    answer = await send("PATCH", path, msgspec.json.encode(body), MERGE)
    written: Json = msgspec.json.decode(answer)
    return written


FORMS: dict[str, Write] = {"PUT": put, "PATCH": patch}


class Claims:
    """Claims, each of a gated pod of its own."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._made = 0

    async def make(self, count: int) -> list[tuple[Json, Json]]:
        """Make claims and pods, and wait until the controller manager is done."""
        numbers = range(self._made, self._made + count)
        self._made += count
        slots = asyncio.Semaphore(16)

        async def one(number: int) -> tuple[Json, Json]:
            name = f"c-{number}"
            claim = objects.claim(self._namespace, name, objects.requests("none"))
            pod = objects.pod(self._namespace, name, claims={"r": name})
            pod["spec"]["schedulingGates"] = [{"name": GATE}]
            async with slots:
                return await self._kube.create(claim), await self._kube.create(pod)

        made = await asyncio.gather(*map(one, numbers))
        await asyncio.sleep(2)
        return list(made)

    async def allocate(
        self, made: list[tuple[Json, Json]], write: Write, send: Send, limit: int
    ) -> float:
        """Allocate all and give the seconds that it took."""
        todo: Iterator[tuple[Json, Json]] = iter(made)

        async def work() -> None:
            for claim, pod in todo:
                held = await write(
                    send, claim, {"metadata": {"finalizers": [FINALIZER]}}
                )
                await write(send, held, {"status": _status(claim, pod)})

        began_s = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(limit)))
        return time.perf_counter() - began_s


def _status(claim: Json, pod: Json) -> Json:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    result = {"request": "r", "driver": "d", "pool": "p", "device": name}
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    return {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            "allocationTimestamp": claim["metadata"]["creationTimestamp"],
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
    }


class Tally(Struct):
    """What was measured of one way to write."""

    rates: dict[int, list[float]] = {}
    """Claims a second, by how many were in flight."""
    own_s: float = 0.0
    servers_s: float = 0.0
    """CPU seconds."""
    claims: int = 0

    def row(self, client: str, form: str) -> Row:
        """Give the row of the table."""
        return {
            "client": client,
            "form": form,
            "claims": self.claims,
            **{
                f"{limit} in flight": statistics.median(rates)
                for limit, rates in self.rates.items()
            },
            "own CPU ms": 1000 * self.own_s / self.claims,
            "servers' CPU ms": 1000 * self.servers_s / self.claims,
        }


async def measure(plane: server.ControlPlane, rounds: int) -> list[Row]:
    """Try every way in every round, so that a busy moment hits all alike."""
    tallies: dict[tuple[str, str], Tally] = {}
    async with plane.client() as kube:
        await kube.until(named("v1", "ServiceAccount", "default", "default"), bool)
        claims = Claims(kube, "default")
        for _ in range(rounds):
            for limit in IN_FLIGHT:
                clients = {
                    "transport": through_transport(plane.kubeconfig(), limit),
                    "aiohttp": through_aiohttp(plane, limit),
                }
                for client, opened in clients.items():
                    async with opened as send:
                        for form, write in FORMS.items():
                            made = await claims.make(CLAIMS)
                            tally = tallies.setdefault((client, form), Tally())
                            tally.own_s -= time.process_time()
                            tally.servers_s -= servers_s(plane)
                            took_s = await claims.allocate(made, write, send, limit)
                            tally.own_s += time.process_time()
                            tally.servers_s += servers_s(plane)
                            tally.rates.setdefault(limit, []).append(CLAIMS / took_s)
                            tally.claims += CLAIMS
    return [tally.row(*way) for way, tally in tallies.items()]


def servers_s(plane: server.ControlPlane) -> float:
    """Add up the CPU seconds of the control plane so far."""
    pids = (program.pid for program in plane.programs.values())
    return sum(cpu_seconds(pid) for pid in pids if pid is not None)


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    binaries = programs.built()
    if binaries is None:
        raise SystemExit(programs.NO_CONTROL_PLANE)
    with (
        tempfile.TemporaryDirectory() as folder,
        server.running(binaries, Path(folder), Options()) as plane,
    ):
        rows = asyncio.run(measure(plane, ROUNDS[options.size]))
    report("claim_writes", options, rows)


if __name__ == "__main__":
    main()
