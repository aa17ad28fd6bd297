"""NATS restarts under agents that show tokens: until each of them is let in again.

10,000 clients (small: 200), each with a token of its own, which the API server of a
real control plane made for a pod of the node agent on one of ten nodes. nats-server,
two callouts, their TokenReviews and the way in which clients come back are real; the
clients all live in this process, whose processor time is part of what limits.

Rows: seconds until half and until all were let in, who began at once and who came back
after the server had ended and was started again; attempts that the server refused; what
the callouts answered; TokenReviews a client; processor seconds of each side.

    python -m benchmarks.bus.logins [--size full | --clients N] [--json FILE]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.cluster.api_requests import requests
from benchmarks.cluster.setup import control_plane, create
from benchmarks.report import Row, cpu_seconds, parser, report
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from runtime.log import configure_logging
from tests.lab.controlplane import objects, programs
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.metrics import scrape
from tests.lab.personas import SYSTEM
from tests.lab.services import Process, is_ready, running
from tests.lab.token_bus import AUDIENCE, TokenBus, agent_pod

NODES = 10
AT_ONCE = 16
"""Tokens that are asked for at a time."""
TOKEN_S = 7_200
LIMIT_S = 900.0
EVERY_S = 0.1
ANSWERS = "moorings_callout_requests_total"
OUTCOMES = ("granted", "refused", "unavailable", "unanswered", "dropped", "failed")
FORGOTTEN_S = 6.0
"""After so long a callout asks again about a token that it knows."""


class Agent(NamedTuple):
    """Who comes back."""

    user: str
    token: str


class Counts(NamedTuple):
    """What was said and used until now."""

    answers: Counter[str]
    """By outcome."""
    refused: int
    """Attempts, by the server: no answer in time, or no."""
    reviews: int
    used_s: Mapping[str, float]


class Bench(NamedTuple):
    """A bus whose agents show tokens, and what answers for it."""

    bus: TokenBus
    callouts: Mapping[str, Process]
    """By where they say how they are."""
    plane: ControlPlane
    kube: Kube

    async def counts(self) -> Counts:
        """Read logs, metrics and processes."""
        answers: Counter[str] = Counter()
        for address in self.callouts:
            found = await scrape(address)
            answers.update({o: int(found.of(ANSWERS, outcome=o)) for o in OUTCOMES})
        used_s = {
            "API server": cpu_seconds(self.plane.programs[API_SERVER].pid or 0),
            "callouts": sum(cpu_seconds(one.pid) for one in self.callouts.values()),
            "clients": time.process_time(),
        }
        reviews = (await requests(self.kube))["POST tokenreviews"]
        return Counts(answers, self.bus.log().count("[ERR]"), reviews, used_s)


async def agents(plane: ControlPlane, kube: Kube, count: int) -> list[Agent]:
    """Make as many tokens, each of the agent's pod on one of some nodes."""
    nodes = [objects.node(f"node-{number}") for number in range(NODES)]
    account = named("v1", "ServiceAccount", "nodeagent", SYSTEM)
    await create(kube, [named("v1", "Namespace", SYSTEM), *nodes])
    await create(kube, [account])
    built = programs.built()
    assert built is not None
    kubectl = Kubectl(built / "kubectl", plane.kubeconfig())
    pods = [agent_pod(kubectl, node["metadata"]["name"]) for node in nodes]
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Agent:
        pod = pods[number % NODES]
        async with limit:
            return await token_of(kube, pod)

    return list(await asyncio.gather(*map(one, range(count))))


async def token_of(kube: Kube, pod: Json) -> Agent:
    """Ask for a token of a pod, as kubelet does."""
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"]}
    spec = {
        "audiences": [AUDIENCE],
        "expirationSeconds": TOKEN_S,
        "boundObjectRef": {**bound, "uid": pod["metadata"]["uid"]},
    }
    made = await kube.request(
        "POST",
        f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/nodeagent/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        | {"spec": spec},
    )
    return Agent(f"nodeagent {pod['spec']['nodeName']}", made["status"]["token"])


@asynccontextmanager
async def bench(plane: ControlPlane, folder: Path) -> AsyncIterator[Bench]:
    """Run a bus and two callouts, which are admins of the control plane."""
    config = plane.kubeconfig()
    bus = TokenBus(folder)
    callouts = {
        address: bus.callout(f"callout-{n}", config, HEALTH_ADDRESS=address)
        for n, address in enumerate(f"127.0.0.1:{find_free_port()}" for _ in range(2))
    }
    bus.start()
    try:
        async with plane.client() as kube, running(*callouts.values()):
            async with asyncio.timeout(LIMIT_S):
                for address in callouts:
                    while not await is_ready(address):  # noqa: ASYNC110  # of another process
                        await asyncio.sleep(EVERY_S)
            yield Bench(bus, callouts, plane, kube)
    finally:
        bus.stop()


async def until_let_in(buses: Sequence[Bus], times: int) -> tuple[float, float]:
    """Wait until half of them, and all, are let in for so many times; seconds."""
    began = time.perf_counter()
    half_s = 0.0
    async with asyncio.timeout(LIMIT_S):
        while True:
            count = sum(bus.connected and bus.connection >= times for bus in buses)
            passed_s = time.perf_counter() - began
            if not half_s and 2 * count >= len(buses):
                half_s = passed_s
            if count == len(buses):
                return half_s, passed_s
            await asyncio.sleep(EVERY_S)


async def measure(
    bench: Bench, made: Sequence[Agent], pause_s: float = FORGOTTEN_S
) -> list[Row]:
    """Let all in; end the server after a pause, and let all in again."""
    rows: list[Row] = []
    before = await bench.counts()
    async with AsyncExitStack() as stack:
        buses = [
            await stack.enter_async_context(Bus.open(bench.bus.settings(*agent)))
            for agent in made
        ]
        for times, when in enumerate(("begin", "come back"), start=1):
            if times > 1:
                await asyncio.sleep(pause_s)
                before = await bench.counts()
                bench.bus.stop()
                await asyncio.to_thread(bench.bus.start)
            half_s, all_s = await until_let_in(buses, times)
            seconds = {"half s": half_s, "all s": all_s}
            made_of = _between(before, await bench.counts(), len(made))
            rows.append({"all": when, "clients": len(made), **seconds, **made_of})
    return rows


def _between(before: Counts, after: Counts, clients: int) -> Row:
    """Give what was said and used in between."""
    answers = after.answers - before.answers
    used_s = {name: s - before.used_s[name] for name, s in after.used_s.items()}
    return {
        "server refused": after.refused - before.refused,
        **{outcome: answers[outcome] for outcome in OUTCOMES},
        "reviews a client": (after.reviews - before.reviews) / clients,
        **{f"{name} cpu s": seconds for name, seconds in used_s.items()},
        "granted a callout's cpu s": answers["granted"] / max(used_s["callouts"], 0.01),
    }


async def run(clients: int) -> list[Row]:
    """Measure so many clients."""
    with (
        tempfile.TemporaryDirectory() as folder,
        control_plane(Options(programs=(ETCD, API_SERVER))) as plane,
    ):
        async with bench(plane, Path(folder)) as found:
            return await measure(found, await agents(plane, found.kube, clients))


def main() -> None:
    """Measure."""
    reading = parser(__doc__ or "")
    reading.add_argument("--clients", type=int, default=0)
    options = reading.parse_args()
    configure_logging("benchmark", level="error")
    clients = options.clients or (200 if options.size == "small" else 10_000)
    report("logins", options, asyncio.run(run(clients)))


if __name__ == "__main__":
    main()
