"""The main job from end to end on this machine, step by step.

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

from contracts.counts import counted
from contracts.gang import Gang
from contracts.ids import DeviceID
from contracts.messages import GangAllocated, GangPending
from contracts.topics import HEALTH
from moorings.bus_client import Client
from moorings.demo.gangs import STEP_S, DemoGangs, list_devices
from moorings.demo.workload import RULE, count_gpus, draw_pods, group_pods, read_trace
from moorings.errors import LocalStackError
from moorings.local.fleets import find_fleet, make_classes
from moorings.local.stack import LocalStack
from moorings.recorded import fetch_solve, find_solve
from moorings.views.reasons import describe_facts
from solver.replay import replay

WAVES = 4
"""How the work arrives: in so many bursts."""
LONE_PODS = 50
"""By which the latency is measured, one at a time."""
Say = Callable[[str], None]


class DemoOptions(Struct, frozen=True, kw_only=True):
    """Options of the demo."""

    fleet: str = "openb"
    seed: int = 1
    trace: Path | None = None
    load: float = 1.2
    """GPUs asked for, as a share of those there are."""


class Demo:
    """One run of the demo; each step finds what the steps before it left."""

    def __init__(
        self,
        options: DemoOptions,
        stack: LocalStack,
        platform: Client,
        viewer: Client,
        say: Say,
    ) -> None:
        """The `platform` submits and follows gangs, the `viewer` sees all the rest."""
        self._options = options
        self._stack = stack
        self._client = platform
        self._viewer = viewer
        self._say = say
        self._class = make_classes(find_fleet(options.fleet))[0].metadata.name
        self._gangs = DemoGangs(stack, platform, self._class)
        self._gpus = 0
        self._allocated: list[Gang] = []
        self._waiting: list[Gang] = []
        self.summary: dict[str, Any] = {}

    async def run(self) -> dict[str, Any]:
        """Go through all steps, and return the summary.

        One task runs beside them: it follows the decisions, for all that wait.
        """
        async with self._gangs.follow():
            await self._show_fleet()
            await self._decide_work()
            await self._measure_latency()
            await self._explain_one()
            await self._break_a_device()
            await self._replay_one()
        return self.summary

    async def _show_fleet(self) -> None:
        announced = await self._viewer.fetch_inventories()
        devices = [
            device
            for message in announced.values()
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
        self.summary |= {"nodes": len(announced), "gpus": self._gpus}
        self._say(
            f"fleet    {len(announced):,} nodes announced {self._gpus:,} GPUs "
            f"of {counted(len(models), 'model')}, by one simulated agent"
        )

    async def _decide_work(self) -> None:
        """Submit more work than the fleet can take, in waves, and wait for answers."""
        # First the work: pods in order of arrival, grouped into gangs.
        sizes = list(group_pods(self._choose_pods(), self._options.seed))
        gangs = [self._gangs.make(pods, gpus) for pods, gpus in sizes]
        pods = sum(pods for pods, _ in sizes)
        requested = sum(pods * gpus for pods, gpus in sizes)
        source = "trace" if self._options.trace is not None else "distribution"
        self._say(
            f"work     {pods:,} whole-GPU pods of the openb {source} in {len(gangs):,} "
            f"gangs ask for {requested:,} GPUs ({requested / self._gpus:.0%} of the "
            "fleet)"
        )
        self._say(f"         rule: {RULE}")

        # Then its decisions, a wave at a time.
        started = time.perf_counter()
        step = -(-len(gangs) // WAVES)
        for number in range(WAVES):
            await self._decide_wave(gangs[number * step : (number + 1) * step], number)
        seconds = time.perf_counter() - started

        # A later wave may have let in who waited: who is in is counted at the end.
        self._allocated, self._waiting = self._split_gangs(gangs)
        used = sum(
            len(list_devices(self._gangs.get_decision(gang)))
            for gang in self._allocated
        )
        self.summary |= {
            "gangs": len(gangs),
            "pods": pods,
            "allocated": len(self._allocated),
            "pending": len(self._waiting),
            "gpusUsed": used,
            "decideSeconds": round(seconds, 3),
            "gangsPerSecond": round(len(gangs) / seconds, 1),
        }
        self._say(
            f"         {len(self._allocated):,} gangs in, {len(self._waiting):,} wait; "
            f"{used:,} of {self._gpus:,} GPUs used ({used / self._gpus:.1%}); "
            f"{len(gangs) / seconds:,.0f} gangs/s from submission to decision"
        )
        await self._wait_written()

    def _choose_pods(self) -> Iterable[int]:
        """Return how many GPUs each pod requests, from the trace or drawn."""
        if self._options.trace is not None:
            return read_trace(self._options.trace)
        limit, total = self._gpus * self._options.load, 0

        def is_within_limit(gpus: int) -> bool:
            nonlocal total
            total += gpus
            return total <= limit

        return takewhile(is_within_limit, draw_pods(self._options.seed))

    async def _decide_wave(self, gangs: list[Gang], number: int) -> None:
        started = time.perf_counter()
        await self._gangs.submit(gangs)
        await self._gangs.wait_decided(gangs)
        seconds = time.perf_counter() - started
        allocated, waiting = self._split_gangs(gangs)
        self._say(
            f"wave {number + 1}   {len(gangs):>5,} gangs: {len(allocated):,} in, "
            f"{len(waiting):,} wait, all decided after {seconds:.2f} s"
        )

    def _split_gangs(self, gangs: list[Gang]) -> tuple[list[Gang], list[Gang]]:
        """Return those that are in, and those that wait."""
        allocated = [gang for gang in gangs if self._gangs.is_allocated(gang)]
        waiting = [gang for gang in gangs if self._gangs.is_waiting(gang)]
        return allocated, waiting

    async def _wait_written(self) -> None:
        """Wait until the publisher confirmed every gang that is in."""
        started = time.perf_counter()
        allocated = {gang.metadata.uid for gang in self._allocated}
        while True:
            written = {
                record.uid
                for record in await self._client.fetch_gangs()
                if record.phase == "Allocated"
            }
            if allocated <= written:
                break
            if time.perf_counter() - started > STEP_S:
                words = self._stack.publisher.read_last_words()
                raise LocalStackError("publisher", f"did not write all\n{words}")
            await asyncio.sleep(0.1)
        files = await asyncio.to_thread(_count_manifests, self._stack.manifests)
        self.summary["manifests"] = files
        self._say(
            f"written  {files:,} manifests, every gang confirmed by the publisher"
        )

    async def _measure_latency(self) -> None:
        """Measure single gangs on an idle bus, in place of gangs that are done."""
        done = self._allocated[: max(1, min(60, len(self._allocated) // 4))]
        await self._gangs.release(done)
        # Those who waited are tried for what became free: not before that it is idle.
        await self._gangs.wait_quiet()
        pods = [self._gangs.make(1, 1) for _ in range(LONE_PODS)]
        for gang in pods:
            await self._gangs.submit([gang])
            await self._gangs.wait_decided([gang])
            await asyncio.sleep(0.02)
        seconds = sorted(map(self._gangs.measure_latency, pods))
        allocated = sum(map(self._gangs.is_allocated, pods))
        p50_ms, max_ms = seconds[len(seconds) // 2] * 1000, seconds[-1] * 1000
        self.summary |= {
            "idleP50Ms": round(p50_ms, 2),
            "idleMaxMs": round(max_ms, 2),
            "idleAllocated": allocated,
        }
        self._say(
            f"latency  {counted(len(done), 'gang')} released; then {LONE_PODS} lone "
            f"pods one at a time, {allocated} in: submit to decision p50 "
            f"{p50_ms:.1f} ms, max {max_ms:.1f} ms"
        )

    async def _explain_one(self) -> None:
        """Explain why the largest waiting gang waits; make one if none does."""
        waiting = [gang for gang in self._waiting if self._gangs.is_waiting(gang)]
        largest = max(waiting, key=count_gpus, default=None)
        if largest is None:
            largest = self._gangs.make(1000, 8)
            await self._gangs.submit([largest])
            await self._gangs.wait_decided([largest])
        decision = self._gangs.get_decision(largest)
        reasons = decision.reasons if isinstance(decision, GangPending) else ()
        self.summary["explained"] = [str(reason.rule) for reason in reasons]
        self._say(f"explain  why does {largest.metadata.name} wait?")
        for reason in reasons:
            where = f" ({reason.subject})" if reason.subject else ""
            self._say(f"         {reason.rule}{where}: {reason.message}")
            self._say(f"         {describe_facts(reason.facts)}")

    async def _break_a_device(self) -> None:
        """Make a held device unhealthy, and see which gang gets it afterwards."""
        # First the fault, on the bus as a taint. Its holder is left alone.
        holder, decision = self._find_holder()
        sick = decision.members[0].claims[0].allocation.devices.results[0].device_id
        node = decision.members[0].node
        started = time.perf_counter()
        await asyncio.to_thread(
            self._stack.faults.write_text,
            f"faults:\n- {{node: {node}, device: {sick.device}, verdict: Unhealthy}}\n",
        )
        taint = await self._wait_tainted(node, sick)
        milliseconds = (time.perf_counter() - started) * 1000
        self._say(
            f"fault    {sick} is made unhealthy: on the bus after "
            f"{milliseconds:.0f} ms with taint {taint}"
        )
        self._say(
            f"         {holder.metadata.name} holds it and keeps it: nothing is moved "
            "silently"
        )

        # Then the holder goes, with a pod first in line for what becomes free.
        probe = self._gangs.make(1, 1, priority=1000)
        await self._gangs.submit([probe])
        await self._gangs.wait_decided([probe])
        await self._gangs.wait_quiet()  # the fault, too, has arrived by then
        await self._gangs.release([holder])
        await self._gangs.wait_allocated(probe, "allocation of the probe")
        is_avoided = all(
            sick not in list_devices(allocation)
            for allocation in self._gangs.list_allocations()
        )
        device = min(list_devices(self._gangs.get_decision(probe)))
        self.summary |= {"faultMs": round(milliseconds, 1), "avoided": is_avoided}
        word = "nobody gets" if is_avoided else "SOMEBODY GOT"
        self._say(
            f"         {holder.metadata.name} is released; {probe.metadata.name}, "
            f"first in line, gets {device}; {word} the sick one"
        )

    def _find_holder(self) -> tuple[Gang, GangAllocated]:
        """Find the last gang with more devices than the probe takes."""
        for gang in reversed(self._allocated):
            decision = self._gangs.get_decision(gang)
            if isinstance(decision, GangAllocated) and len(list_devices(decision)) > 1:
                return gang, decision
        raise LocalStackError("solver", "no gang of the demo holds two devices")

    async def _wait_tainted(self, node: str, sick: DeviceID) -> str:
        """Wait until a device is tainted on the bus, and return its taint."""
        address = (self._client.cluster, node)
        deadline = time.perf_counter() + STEP_S
        while time.perf_counter() < deadline:
            last = await self._viewer.bus.read_last(HEALTH, *address)
            judged = last.message if last is not None else None
            for device in () if judged is None else judged.devices:
                if device.device == sick and device.taints:
                    return f"{device.taints[0].key}:{device.taints[0].effect}"
            await asyncio.sleep(0.02)
        words = self._stack.agent.read_last_words()
        raise LocalStackError("nodeagent", f"judged no device unhealthy\n{words}")

    async def _replay_one(self) -> None:
        """Solve one recorded question again, here, and compare the bytes."""
        # The answer is recorded after its decisions are published: wait for it.
        solve = min(decision.solve for decision in self._gangs.list_allocations())
        entry = await find_solve(self._viewer, solve)
        while entry.decided is None:
            await asyncio.sleep(0.05)
            entry = await find_solve(self._viewer, solve)
        recorded = await fetch_solve(self._viewer, entry)
        started = time.perf_counter()
        result, decision = await asyncio.to_thread(replay, recorded)
        seconds = time.perf_counter() - started
        self.summary |= {"replay": result.solve, "sameBytes": result.same_bytes}
        verdict = "the same bytes" if result.same_bytes else "OTHER bytes"
        gangs = counted(len(decision.gangs), "gang")
        pages = counted(len(recorded.pages), "recorded page")
        self._say(
            f"replay   solve {result.solve[:16]}, {gangs} from {pages}: {verdict} "
            f"after {seconds:.2f} s"
        )
        self._say(f"         decision sha256 {result.replayed_decision}")


def _count_manifests(folder: Path) -> int:
    return sum(1 for path in folder.rglob("*") if path.suffix in {".json", ".yaml"})
