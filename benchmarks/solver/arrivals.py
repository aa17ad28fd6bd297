"""Gangs come and go on a cluster that is nearly full, by the processor's time.

The cluster and the gangs of `benchmarks.bus.arrivals`, without a bus and in one
process. The clock is made: a batch lasts as long as the processor worked on it, so the
seconds from a gang's submission to its first answer are those of cores of one's own,
however many others want them. `--slower 2` is a machine of half the speed. A row each
for batches of at most so many gangs.

    python -m benchmarks.solver.arrivals [--size full] [--batch N ...]
        [--nodes N] [--slower N]
"""

from __future__ import annotations

import random
import time

from msgspec import Struct

from benchmarks.bus.arrivals import DEVICES_EACH, NODES, RATE
from benchmarks.report import Row, parser, percentile, report
from benchmarks.solver.full_path import Decider
from benchmarks.worlds.fleets import CLUSTER, observed_class, submission, uniform
from contracts.ids import GangKey, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import ReleaseOutcome
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.service.messages import make_decision, make_release
from solver.snapshot.snapshot import Snapshot, apply

SECONDS = {"small": 3.0, "full": 30.0}
BATCHES = (256, 16)
"""Gangs of a batch at most: as the service takes them, and few."""


class Run(Struct, frozen=True, kw_only=True):
    """What is to be measured."""

    nodes: int
    seconds: float
    batch: int
    """Gangs of one batch at most."""
    slower: float = 1.0
    seed: int = 1

    @property
    def full(self) -> int:
        """Devices that may be held."""
        return self.nodes * DEVICES_EACH * 9 // 10


class Arrivals:
    """Who comes, who goes, who is decided."""

    def __init__(self, evaluator: SelectorEvaluator, run: Run) -> None:
        self._run = run
        self._decider = Decider(evaluator)
        self._draw = random.Random(run.seed)
        self._queue = GangQueue()
        self._snapshot = apply(Snapshot(), observed_class())
        for message in uniform(run.nodes):
            self._snapshot = apply(self._snapshot, message)
        self._came = 0
        self._devices: dict[GangKey, int] = {}
        """How many each gang holds."""
        self.decided = 0
        """Gangs, as often as they were tried."""

    @property
    def is_full(self) -> bool:
        """True if as much is held as may be."""
        return sum(self._devices.values()) >= self._run.full

    def arrive(self) -> GangKey:
        """Submit a gang."""
        self._came += 1
        message = submission(self._came, self._draw)
        self._snapshot = apply(self._snapshot, message, sequence=self._came)
        record = self._snapshot.gangs.get(message.key)
        assert record is not None
        self._queue.follow(record)
        return message.key

    def depart(self) -> None:
        """Release random gangs until no more is held than may be."""
        while sum(self._devices.values()) > self._run.full:
            gang = self._draw.choice(list(self._devices))
            del self._devices[gang]
            record = self._snapshot.gangs.get(gang)
            assert record is not None
            outcome = ReleaseOutcome.COMPLETED
            message = make_release(record, outcome, cluster=CLUSTER, epoch=1)
            self._snapshot = apply(self._snapshot, message, sequence=self._came)

    def decide(self) -> tuple[list[GangKey], float]:
        """Decide a batch; gives its gangs and the processor's seconds."""
        self._queue.wake(self._snapshot, self._snapshot.inventory.grown)
        self._snapshot = self._snapshot.without_grown()
        started = time.process_time()
        records = self._queue.choose(self._snapshot, BatchLimits(gangs=self._run.batch))
        if not records:
            return [], 0.0
        decision = self._decider.decide(self._snapshot, records).decision
        seconds = time.process_time() - started
        self._believe(decision, records)
        self.decided += len(records)
        return [record.key for record in records], seconds

    def _believe(self, decision: Decision, records: tuple[GangRecord, ...]) -> None:
        """Apply the answers as if they came back over the bus."""
        for answer, record in zip(decision.gangs, records, strict=True):
            message = make_decision(
                answer, record, cluster=CLUSTER, solve=SolveID("arrivals"), epoch=1
            )
            if message is not None:
                self._snapshot = apply(self._snapshot, message, sequence=self._came)
            if answer.members:
                self._devices[record.key] = sum(
                    len(claim.allocation.devices.results)
                    for member in answer.members
                    for claim in member.claims
                )
            now = self._snapshot.gangs.get(record.key)
            if now is not None:
                self._queue.follow(now)


def measure(evaluator: SelectorEvaluator, run: Run) -> Row:
    """Fill a cluster, then let gangs come and go for so long."""
    arrivals = Arrivals(evaluator, run)
    while not arrivals.is_full:
        arrivals.arrive()
        arrivals.decide()
    arrivals.depart()
    now = due = worked = 0.0
    batches, arrivals.decided = 0, 0
    came_at: dict[GangKey, float] = {}
    waits: dict[GangKey, float] = {}
    while now < run.seconds:
        while due <= now:
            came_at[arrivals.arrive()] = due
            arrivals.depart()
            due += 1 / RATE
        gangs, spent = arrivals.decide()
        now = now + spent * run.slower if gangs else due
        worked += spent
        batches += bool(gangs)
        for gang in came_at.keys() & set(gangs):
            waits.setdefault(gang, now - came_at[gang])
    return {
        "nodes": run.nodes,
        "batch": run.batch,
        "gangs": len(came_at),
        "answered": len(waits),
        "p50 ms": percentile(list(waits.values()), 0.5) * 1000,
        "p99 ms": percentile(list(waits.values()), 0.99) * 1000,
        "max ms": max(waits.values()) * 1000,
        "batches": batches,
        "tried": arrivals.decided,
        "busy %": 100 * worked * run.slower / now,
    }


def main() -> None:
    """Measure each size of batch."""
    reading = parser(__doc__ or "")
    reading.add_argument("--batch", nargs="+", type=int, default=BATCHES)
    reading.add_argument("--nodes", type=int, default=NODES)
    reading.add_argument("--slower", type=float, default=1.0)
    options = reading.parse_args()
    runs = [
        Run(
            nodes=options.nodes,
            seconds=SECONDS[options.size],
            batch=batch,
            slower=options.slower,
            seed=options.seed,
        )
        for batch in options.batch
    ]
    with SelectorEvaluator() as evaluator:
        rows = [measure(evaluator, run) for run in runs]
    report("solver_arrivals", options, rows)


if __name__ == "__main__":
    main()
