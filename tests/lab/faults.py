"""What goes wrong beside a cluster, one thing at a time, and is put right again.

Kills and pauses of everything that runs, an API server that is slow or cut off, a store
of NATS that is lost, a disk of it that is full, a clock that is an hour behind or days
ahead, an etcd that was restored from what it held some seconds before.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence

from tests.lab.controlplane.options import API_SERVER, ETCD
from tests.lab.controlplane.server import ControlPlane
from tests.lab.partition import Link
from tests.lab.processes import resident_mebibytes
from tests.lab.secured_cluster import CALLOUTS, PUBLISHERS, SOLVERS, SecuredStack
from tests.lab.secured_nats import SERVERS
from tests.lab.services import Process
from tests.lab.small_disk import SmallDisk

SERVER, ALL_SERVERS = "a server", "all servers"
"""Of NATS."""
_SERVICES = (*SOLVERS, *PUBLISHERS, *CALLOUTS)
KILLED = (*_SERVICES, SERVER, ALL_SERVERS, API_SERVER, ETCD)
PAUSED = (*_SERVICES, SERVER, API_SERVER, ETCD)
SLOW, CUT, LOST, FULL, CLOCK, RESTORED = (
    "API server slow",
    "API server cut off",
    "store lost",
    "disk full",
    "clock stepped",
    "etcd restored",
)
SLOW_S = 2.0
"""Added to each answer that publishers get."""
FULL_SERVER = 2
"""The server whose store is on a small disk."""
_STEPS_H = (-1, -1, 1, 26)


class Faults:
    """Makes faults, and counts them by kind."""

    def __init__(
        self,
        plane: ControlPlane,
        stack: SecuredStack,
        link: Link,
        disk: SmallDisk | None,
        *,
        draw: random.Random,
        looking: asyncio.Lock,
    ) -> None:
        """`link`: publishers' way to the API server; `disk`: None, none can be full.

        `looking` is held while the cluster goes back in time.
        """
        self._looking = looking
        self._plane = plane
        self._stack = stack
        self._link = link
        self._disk = disk
        self._draw = draw
        self.counts: Counter[str] = Counter()

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that can be made here."""
        kinds = [*(f"kill {name}" for name in KILLED)]
        kinds += [f"pause {name}" for name in PAUSED]
        kinds += [SLOW, CUT, LOST, RESTORED]
        kinds += [FULL] if self._disk is not None else []
        kinds += [CLOCK] if self._stack.clocks else []
        return tuple(kinds)

    async def make(self, kind: str) -> None:
        """Let one thing happen, and bring everything back after a moment."""
        verb, _, victim = kind.partition(" ")
        match verb, victim:
            case "kill", _:
                await self._kill(victim)
            case "pause", _:
                await self._pause(victim)
            case _ if kind in (SLOW, CUT):
                await self._disturb_link(kind)
            case _ if kind == LOST:
                # The others have what it lost, once it was one of them.
                await asyncio.to_thread(self._stack.nats.wait_healthy)
                number = self._draw.randrange(SERVERS)
                self._stack.nats.lose(number)
                self._stack.nats.start(number)
                await asyncio.to_thread(self._stack.nats.wait_healthy)
            case _ if kind == FULL:
                await self._fill_disk()
            case _ if kind == RESTORED:
                await self._restore_store()
            case _:
                await self._step_clock()
        self.counts[kind] += 1

    def report(self) -> str:
        """Return a table of what was made."""
        lines = (f"{count:6} {kind}" for kind, count in sorted(self.counts.items()))
        return "\n".join([*lines, f"{self.counts.total():6} in all"])

    def held_mebibytes(self) -> dict[str, int]:
        """Return how much memory each service and server of NATS holds."""
        pids = {name: each.pid for name, each in self._stack.processes.items()}
        pids |= {f"nats-{n}": self._stack.nats.pid(n) for n in range(SERVERS)}
        return {name: resident_mebibytes(pid) for name, pid in pids.items()}

    async def _kill(self, victim: str) -> None:
        pause_s = self._draw.random() * 0.5
        if victim in self._plane.programs:
            self._plane.kill(victim)
            await asyncio.sleep(pause_s)
            await self._plane.restart(victim)
        elif victim in (SERVER, ALL_SERVERS):
            nats = self._stack.nats
            count = 1 if victim == SERVER else SERVERS
            numbers = self._draw.sample(range(SERVERS), count)
            for number in numbers:
                nats.kill(number)
            await asyncio.sleep(pause_s)
            for number in numbers:
                nats.start(number)
        else:
            self._restart(self._stack.processes[victim])
            await asyncio.sleep(pause_s)

    async def _pause(self, victim: str) -> None:
        """Stop it for as long as others take its place, or a little less."""
        pause_s = self._draw.choice((0.5, 1.5, 4.0))
        if victim == SERVER:
            number = self._draw.randrange(SERVERS)
            self._stack.nats.signal(number, signal.SIGSTOP)
            await asyncio.sleep(pause_s)
            self._stack.nats.signal(number, signal.SIGCONT)
            return
        if victim in self._plane.programs:
            pid = self._plane.programs[victim].pid
        else:
            pid = self._stack.processes[victim].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(pause_s)
        os.kill(pid, signal.SIGCONT)

    async def _disturb_link(self, kind: str) -> None:
        if kind == SLOW:
            self._link.delay_s = SLOW_S
        else:
            self._link.cut()
        await asyncio.sleep(4.0)
        self._link.delay_s = 0.0
        self._link.heal()

    async def _fill_disk(self) -> None:
        """As on a node whose disk others fill; the server starts again with room."""
        assert self._disk is not None
        self._disk.fill()
        await asyncio.sleep(2.0)
        self._disk.make_room()
        self._stack.nats.kill(FULL_SERVER)
        self._stack.nats.start(FULL_SERVER)

    async def _step_clock(self) -> None:
        """Step the clock of one service, and back; of a callout tokens would expire.

        Sometimes it is started again meanwhile, and meets what was written earlier.
        """
        name = self._draw.choice(sorted(self._stack.clocks))
        clock = self._stack.clocks[name]
        clock.step(self._draw.choice(_STEPS_H) * 3600)
        if self._draw.random() < 0.5:
            self._restart(self._stack.processes[name])
        await asyncio.sleep(4.0)
        clock.step(0)

    async def _restore_store(self) -> None:
        """Forget the last seconds of the cluster, as a restored backup does."""
        await asyncio.to_thread(self._plane.save_store)
        await asyncio.sleep(self._draw.choice((1.0, 3.0, 6.0)))
        async with self._looking:
            await self._plane.restore_store()

    def _restart(self, process: Process) -> None:
        process.kill()
        process.start()


def in_turn(kinds: Sequence[str], count: int, draw: random.Random) -> list[str]:
    """Choose what to make: each kind once in an order that is drawn, then any."""
    first = draw.sample(kinds, min(count, len(kinds)))
    return [*first, *(draw.choice(kinds) for _ in range(count - len(first)))]
