"""`moorings up` among a user's `kill -9`: it goes on, the bus too, and all is decided.

Any of its processes is killed, `moorings up` itself as well, or stopped for a while.
6 kills in `make test`; in `make soak` 200, or as many as MOORINGS_KILLS says, by
MOORINGS_SEED. `faults.txt` counts them.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorings.errors import BadInputError
from tests.lab.command_line import MAIN, open_as
from tests.lab.endurance import Asked, is_written
from tests.lab.faults import in_turn
from tests.lab.processes import command_of, descendants, resident_mebibytes
from tests.lab.services import eventually
from tests.lab.soak import sized

KILLS = int(os.environ.get("MOORINGS_KILLS", sized(6, 200)))
SEED = os.environ.get("MOORINGS_SEED", str(KILLS))
PAUSED_EVERY = 4
"""Kills between two pauses."""
PAUSES_S = (0.5, 2.0, 6.0)
WRITTEN_EVERY = 20
READY_S = 120.0

UP, EVERYTHING = "moorings up", "everything below it"
NAMED = {
    "nats-server -c": "nats-server",
    "-m nodeagent": "nodeagent",
    "-m publisher": "publisher",
    "-m solver": "solver",
    "multiprocessing.spawn": "solve worker",
    "multiprocessing.resource_tracker": "resource tracker",
}
"""By words of their command lines."""
SANDBOX, IN_SANDBOX = "sandbox", "child of the sandbox"
VICTIMS = (*NAMED.values(), SANDBOX, IN_SANDBOX, UP, EVERYTHING)


class Up:
    """`moorings up` with the small fleet, as long as it is started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._log = home / "up.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and return when it is ready."""
        with self._log.open("ab") as log:
            began_at = log.tell()
            self._process = subprocess.Popen(
                [*MAIN, "up", "--fleet", "small"],
                env={**os.environ, "XDG_STATE_HOME": str(self._home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until_s = time.monotonic() + READY_S
        while b"ready: nats://" not in self._log.read_bytes()[began_at:]:
            self.check()
            assert time.monotonic() < until_s, self.log()
            time.sleep(0.1)

    def check(self) -> None:
        """It never ends by itself."""
        assert self._process is not None
        assert self._process.poll() is None, self.log()

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it as ^C does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(READY_S) == 0, self.log()

    def close(self) -> None:
        """End it in whatever state it is."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def log(self) -> str:
        """Read what it said last."""
        return self._log.read_text()[-3000:]

    def find(self) -> dict[str, int]:
        """Find its processes by name."""
        found = {UP: self.pid}
        for pid in descendants(self.pid):
            command = command_of(pid)
            names = [name for words, name in NAMED.items() if words in command]
            if "-m solver.cel.worker" in command:
                names = [IN_SANDBOX if SANDBOX in found else SANDBOX]
            found |= dict.fromkeys(names, pid)
        return found


@contextmanager
def running_up(home: Path) -> Iterator[Up]:
    """Run it while the block runs."""
    up = Up(home)
    try:
        up.start()
        yield up
        up.stop()
    finally:
        up.close()


class World:
    """What runs, what happens to it, and what was asked of it."""

    def __init__(self, up: Up, home: Path, draw: random.Random) -> None:
        self._up = up
        self._home = home
        self._draw = draw
        self.asked = Asked(draw)
        self.counts: Counter[str] = Counter()

    async def kill(self, victim: str) -> None:
        """Kill a process; in the place of one that is not there now, another."""
        there = self._up.find()
        if victim not in (*there, EVERYTHING):
            victim = self._draw.choice(sorted(there))
        if victim == UP:
            self._up.kill()
            await asyncio.to_thread(self._up.start)
        elif victim == EVERYTHING:
            for pid in descendants(self._up.pid):
                _send(pid, signal.SIGKILL)
        else:
            _send(there[victim], signal.SIGKILL)
        self.counts[f"kill {victim}"] += 1

    async def pause(self) -> None:
        """Stop a process for a while."""
        there = self._up.find()
        victim = self._draw.choice(sorted(there))
        _send(there[victim], signal.SIGSTOP)
        await asyncio.sleep(self._draw.choice(PAUSES_S))
        _send(there[victim], signal.SIGCONT)
        self.counts[f"pause {victim}"] += 1

    async def go_on(self, *, is_written_too: bool) -> None:
        """Ask for something new; it is decided, and nothing is given twice."""
        await eventually(self._is_answered, "the bus answers")
        async with open_as("publisher", self._home) as client:
            await self.asked.submit_some(client.bus, at_least=1)
            await self.asked.end_some(client.bus)
            manifests = self._home / "moorings" / "manifests"

            async def is_settled() -> bool:
                # Gangs that wait are decided whenever others end: one look at all.
                return await self.asked.settled(client) and (
                    not is_written_too or is_written(manifests, self.asked.records)
                )

            await eventually(is_settled, self.asked.describe_unsettled)
        self.asked.check()
        self._up.check()

    async def _is_answered(self) -> bool:
        try:
            async with open_as("publisher", self._home):
                return True
        except BadInputError:
            return False

    def report(self) -> str:
        """Return a table of what happened, and what the processes hold now."""
        lines = [f"{count:6} {kind}" for kind, count in sorted(self.counts.items())]
        held = {name: resident_mebibytes(pid) for name, pid in self._up.find().items()}
        gangs = f"{len(self.asked.accepted)} gangs"
        return "\n".join([*lines, f"{self.counts.total():6} in all, {gangs}, {held}"])


def _send(pid: int, what: signal.Signals) -> None:
    """Send a signal; a process may have ended meanwhile."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return


async def test_it_goes_on_and_all_is_decided_whatever_is_killed(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    with running_up(tmp_path) as up:
        world = World(up, tmp_path, draw)
        await world.go_on(is_written_too=True)
        for number, victim in enumerate(in_turn(VICTIMS, KILLS, draw), start=1):
            if number % PAUSED_EVERY == 0:
                await world.pause()
                await world.go_on(is_written_too=False)
            await world.kill(victim)
            await world.go_on(is_written_too=number % WRITTEN_EVERY == 0)
            (tmp_path / "faults.txt").write_text(world.report())
        await world.go_on(is_written_too=True)
        report = world.report()
    print(f"seed {SEED}\n{report}")  # noqa: T201 # the report of a soak
    assert sum(n for kind, n in world.counts.items() if kind[:4] == "kill") == KILLS
