"""The main job from end to end on this machine, told step by step; ends by itself.

Real parts all the way: a nats-server, the node agent for a simulated fleet, the
solver, the publisher. Each step measures what it did and keeps it for the summary.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec import Struct

from contracts.gang import Gang
from contracts.ids import DeviceID, GangUID, Namespace
from contracts.messages import (
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangReleased,
    ReleaseGang,
    SubmitGang,
)
from contracts.topics import DECISIONS, HEALTH, SUBMISSIONS
from moorings.client import Client
from moorings.demo.facts import (
    count_files,
    device_count,
    devices_in,
    gpus_asked,
)
from moorings.demo.workload import RULE, drawn_pods, gang_of, grouped, traced_pods
from moorings.errors import LocalStackError
from moorings.local.fleets import find_fleet, make_classes
from moorings.local.stack import LocalStack, inventories
from moorings.recorded import fetch_solve, find_solve
from runtime.wire import Outgoing
from solver.replay import replay

WAVES = 4
"""How the work arrives: in so many bursts."""
STEP_S = 60.0
SETTLE_S = 0.5
"""The solver reads health and commands from different streams, in its own time."""
Say = Callable[[str], None]


class DemoOptions(Struct, frozen=True, kw_only=True):
    """What the demo is to show."""

    fleet: str = "openb"
    seed: int = 1
    trace: Path | None = None
    load: float = 1.2
    """GPUs asked for, as a share of those there are."""


class Demo:
    """One run of the demo."""

    def __init__(
        self, options: DemoOptions, stack: LocalStack, client: Client, say: Say
    ) -> None:
        self._options = options
        self._stack = stack
        self._client = client
        self._say = say
        self._stop = asyncio.Event()
        self._decisions: dict[GangUID, tuple[DecisionMessage, float]] = {}
        self._changed = asyncio.Event()
        self._sent: dict[GangUID, float] = {}
        self._numbers = 0
        self._class = make_classes(find_fleet(options.fleet))[0].metadata.name
        self.summary: dict[str, Any] = {}

    async def run(self) -> dict[str, Any]:
        """Go through all steps; gives the summary."""
        follower = asyncio.create_task(self._follow())
        try:
            await self._fleet()
            await self._work()
            await self._latency()
            await self._explain_one()
            await self._break_a_device()
            await self._replay_one()
        finally:
            self._stop.set()
            await follower
        return self.summary

    async def _follow(self) -> None:
        batches = self._client.bus.read(
            DECISIONS, self._client.cluster, stop=self._stop
        )
        async for batch in batches:
            for incoming in batch.messages:
                message = incoming.message
                if message is not None:
                    self._decisions[message.uid] = (message, time.perf_counter())
            if batch.messages:
                self._changed.set()

    async def _until(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.perf_counter() + STEP_S
        while not holds():
            self._changed.clear()
            try:
                async with asyncio.timeout(deadline - time.perf_counter()):
                    await self._changed.wait()
            except TimeoutError:
                reason = f"no {what} within {STEP_S:g} s"
                words = self._stack.solver.last_words()
                raise LocalStackError("solver", f"{reason}\n{words}") from None

    # --- the steps -------------------------------------------------------------------

    async def _fleet(self) -> None:
        found = await inventories(self._client)
        devices = [
            device
            for message in found.values()
            for pool in message.pools
            if pool.driver == self._class
            for device in pool.devices
        ]
        models = {
            attribute.string_value
            for device in devices
            if (attribute := device.attributes.get("productName")) is not None
        }
        self._gpus = len(devices)
        self.summary |= {"nodes": len(found), "gpus": self._gpus}
        self._say(
            f"fleet    {len(found):,} nodes announced {self._gpus:,} GPUs of "
            f"{len(models)} models, by one simulated agent"
        )

    def _pods(self) -> Iterable[int]:
        if self._options.trace is not None:
            return traced_pods(self._options.trace)
        wanted, asked = self._gpus * self._options.load, 0

        def more(gpus: int) -> bool:
            nonlocal asked
            asked += gpus
            return asked <= wanted

        return takewhile(more, drawn_pods(self._options.seed))

    async def _work(self) -> None:
        sizes = list(grouped(self._pods(), self._options.seed))
        gangs = [self._gang(pods, gpus) for pods, gpus in sizes]
        pods = sum(pods for pods, _ in sizes)
        asked = sum(pods * gpus for pods, gpus in sizes)
        source = "trace" if self._options.trace is not None else "distribution"
        self._say(
            f"work     {pods:,} whole-GPU pods of the openb {source} in {len(gangs):,} "
            f"gangs ask for {asked:,} GPUs ({asked / self._gpus:.0%} of the fleet)"
        )
        self._say(f"         rule: {RULE}")
        started = time.perf_counter()
        step = -(-len(gangs) // WAVES)
        for number in range(WAVES):
            await self._wave(gangs[number * step : (number + 1) * step], number)
        seconds = time.perf_counter() - started
        admitted, waiting = self._verdicts(gangs)
        used = sum(device_count(self._decision(gang)) for gang in admitted)
        self.summary |= {
            "gangs": len(gangs),
            "pods": pods,
            "allocated": len(admitted),
            "pending": len(waiting),
            "gpusUsed": used,
            "decideSeconds": round(seconds, 3),
            "gangsPerSecond": round(len(gangs) / seconds, 1),
        }
        self._waiting = waiting
        self._admitted = admitted
        self._say(
            f"         {len(admitted):,} gangs in, {len(waiting):,} wait; {used:,} of "
            f"{self._gpus:,} GPUs used ({used / self._gpus:.1%}); "
            f"{len(gangs) / seconds:,.0f} gangs/s from submission to decision"
        )
        await self._written(admitted)

    async def _wave(self, gangs: list[Gang], number: int) -> None:
        started = time.perf_counter()
        await self._submit(gangs)
        uids = [GangUID(gang.metadata.uid) for gang in gangs]
        await self._until(lambda: all(u in self._decisions for u in uids), "decision")
        seconds = time.perf_counter() - started
        admitted, waiting = self._verdicts(gangs)
        self._say(
            f"wave {number + 1}   {len(gangs):>5,} gangs: {len(admitted):,} in, "
            f"{len(waiting):,} wait, all decided after {seconds:.2f} s"
        )

    async def _written(self, admitted: list[Gang]) -> None:
        started = time.perf_counter()
        wanted = {gang.metadata.uid for gang in admitted}
        while True:
            written = {
                record.uid
                for record in await self._client.gangs()
                if record.phase == "Written"
            }
            if wanted <= written:
                break
            if time.perf_counter() - started > STEP_S:
                words = self._stack.publisher.last_words()
                raise LocalStackError("publisher", f"did not write all\n{words}")
            await asyncio.sleep(0.1)
        files = await asyncio.to_thread(count_files, self._stack.manifests)
        self.summary["manifests"] = files
        self._say(
            f"written  {files:,} manifests, every gang confirmed by the publisher"
        )

    async def _latency(self) -> None:
        """Measure single gangs on an idle bus, in place of gangs that are done."""
        done = self._admitted[: max(1, min(60, len(self._admitted) // 4))]
        await self._release(*done)
        seconds = []
        for _ in range(50):
            gang = self._gang(1, 1)
            await self._submit([gang])
            uid = GangUID(gang.metadata.uid)
            await self._until(lambda uid=uid: uid in self._decisions, "decision")  # type: ignore[misc]  # a default argument binds it now
            seconds.append(self._decisions[uid][1] - self._sent[uid])
            await asyncio.sleep(0.02)
        seconds.sort()
        p50, p99 = seconds[len(seconds) // 2] * 1000, seconds[-1] * 1000
        self.summary |= {"idleP50Ms": round(p50, 2), "idleMaxMs": round(p99, 2)}
        self._say(
            f"latency  {len(done)} gangs released; then lone pods one at a time: "
            f"submit to decision p50 {p50:.1f} ms, max {p99:.1f} ms"
        )

    async def _explain_one(self) -> None:
        waiting = [g for g in self._waiting if self._waits(g)]
        largest = max(waiting, key=gpus_asked, default=None)
        if largest is None:
            largest = self._gang(1000, 8)
            await self._submit([largest])
            uid = GangUID(largest.metadata.uid)
            await self._until(lambda: uid in self._decisions, "decision")
        decision = self._decision(largest)
        reasons = decision.reasons if isinstance(decision, GangPending) else ()
        self.summary["explained"] = [str(reason.rule) for reason in reasons]
        self._say(f"explain  why does {largest.metadata.name} wait?")
        for reason in reasons:
            where = f" ({reason.subject})" if reason.subject else ""
            self._say(f"         {reason.rule}{where}: {reason.message}")
            facts = ", ".join(f"{key} {value:,}" for key, value in reason.facts.items())
            self._say(f"         counted: {facts}")

    async def _break_a_device(self) -> None:
        holder, decision = self._held()
        sick = decision.members[0].claims[0].allocation.devices.results[0].device_id
        node = decision.members[0].node
        started = time.perf_counter()
        await asyncio.to_thread(
            self._stack.faults.write_text,
            f"faults:\n- {{node: {node}, device: {sick.device}, verdict: Unhealthy}}\n",
        )
        taint = await self._tainted(node, sick)
        milliseconds = (time.perf_counter() - started) * 1000
        self._say(
            f"fault    {sick} is made unhealthy: on the bus after "
            f"{milliseconds:.0f} ms with taint {taint}"
        )
        self._say(
            f"         {holder.metadata.name} holds it and keeps it: nothing is moved "
            "silently"
        )
        probe = self._gang(1, 1, priority=1000)
        await self._submit([probe])
        await asyncio.sleep(SETTLE_S)
        await self._release(holder)
        uid = GangUID(probe.metadata.uid)
        await self._until(
            lambda: (
                uid in self._decisions
                and isinstance(self._decision(probe), GangAllocated)
            ),
            "allocation of the probe",
        )
        holders = [m for m, _ in self._decisions.values() if sick in devices_in(m)]
        got = min(devices_in(self._decision(probe)))
        self.summary |= {"faultMs": round(milliseconds, 1), "avoided": not holders}
        word = "nobody gets" if not holders else "SOMEBODY GOT"
        self._say(
            f"         {holder.metadata.name} is released; {probe.metadata.name}, "
            f"first in line, gets {got}; {word} the sick one"
        )

    def _held(self) -> tuple[Gang, GangAllocated]:
        for gang in reversed(self._admitted):
            decision = self._decision(gang)
            if isinstance(decision, GangAllocated) and device_count(decision) > 1:
                return gang, decision
        raise LocalStackError("solver", "no gang of the demo holds two devices")

    async def _tainted(self, node: str, sick: DeviceID) -> str:
        address = (self._client.cluster, node)
        deadline = time.perf_counter() + STEP_S
        while time.perf_counter() < deadline:
            last = await self._client.bus.read_last(HEALTH, *address)
            judged = last.message if last is not None else None
            for device in () if judged is None else judged.devices:
                if device.device == sick and device.taints:
                    return f"{device.taints[0].key}:{device.taints[0].effect}"
            await asyncio.sleep(0.02)
        words = self._stack.agent.last_words()
        raise LocalStackError("nodeagent", f"judged no device unhealthy\n{words}")

    async def _replay_one(self) -> None:
        solves = {
            message.solve
            for message, _ in self._decisions.values()
            if isinstance(message, GangAllocated)
        }
        chosen = min(solves)
        entry = await find_solve(self._client, chosen)
        while entry.decided is None:
            await asyncio.sleep(0.05)
            entry = await find_solve(self._client, chosen)
        recorded = await fetch_solve(self._client, entry)
        started = time.perf_counter()
        result, decision = await asyncio.to_thread(replay, recorded)
        seconds = time.perf_counter() - started
        self.summary |= {"replay": result.solve, "sameBytes": result.same_bytes}
        verdict = "the same bytes" if result.same_bytes else "OTHER bytes"
        self._say(
            f"replay   solve {result.solve[:16]}, {len(decision.gangs)} gangs from "
            f"{len(recorded.pages)} recorded pages: {verdict} after {seconds:.2f} s"
        )
        self._say(f"         decision sha256 {result.replayed_decision}")

    # --- what the steps share --------------------------------------------------------

    def _gang(self, pods: int, gpus: int, *, priority: int = 0) -> Gang:
        self._numbers += 1
        return gang_of(self._numbers, pods, gpus, self._class, priority)

    async def _submit(self, gangs: list[Gang]) -> None:
        cluster, outgoing = self._client.cluster, []
        for gang in gangs:
            uid = GangUID(gang.metadata.uid)
            message = SubmitGang(cluster=cluster, uid=uid, gang=gang)
            outgoing.append(Outgoing.of(SUBMISSIONS, message))
        now = time.perf_counter()
        self._sent |= {GangUID(gang.metadata.uid): now for gang in gangs}
        await self._client.bus.publish_many(outgoing)

    async def _release(self, *gangs: Gang) -> None:
        uids = [GangUID(gang.metadata.uid) for gang in gangs]
        for gang, uid in zip(gangs, uids, strict=True):
            namespace = Namespace(gang.metadata.namespace)
            cluster = self._client.cluster
            await self._client.command(
                ReleaseGang(cluster=cluster, namespace=namespace, uid=uid)
            )
        await self._until(
            lambda: all(isinstance(self._decisions[u][0], GangReleased) for u in uids),
            "release",
        )

    def _decision(self, gang: Gang) -> DecisionMessage:
        return self._decisions[GangUID(gang.metadata.uid)][0]

    def _waits(self, gang: Gang) -> bool:
        return isinstance(self._decision(gang), GangPending)

    def _verdicts(self, gangs: list[Gang]) -> tuple[list[Gang], list[Gang]]:
        admitted = [g for g in gangs if isinstance(self._decision(g), GangAllocated)]
        waiting = [g for g in gangs if self._waits(g)]
        return admitted, waiting
