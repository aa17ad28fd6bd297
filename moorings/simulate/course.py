"""Jobs come and go in virtual time, over the code that decides beside a cluster.

The same Snapshot, queue, reservations and engines as the service's; only the clock is
made, and nothing takes any time but the jobs. The same jobs and policy make the same
course. Pure, but for the sandbox in which selectors are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.ids import GangKey, GangUID, Namespace
from contracts.lifecycle import GangRecord
from contracts.messages import ReleaseOutcome
from moorings.deciding import Deciding, Judged
from moorings.simulate.cluster import SimulatedCluster
from moorings.simulate.job import CLUSTER, Job, submit_job
from solver.decision import GangDecision
from solver.problem.free_devices import count_free
from solver.problem.gangs import GangPart
from solver.problem.problem import Parameters, QuotaPart
from solver.service.messages import make_release
from solver.snapshot.snapshot import Snapshot
from solver.timeline.keeper import Book
from solver.timeline.patience import NEVER

_TAKEN = Reason(rule=Rule.TAKEN, message="too few devices are free")


class Policy(Struct, frozen=True, kw_only=True):
    """What is tried out."""

    name: str
    patience_s: int
    """How long a gang is tried in vain before devices are kept for it; `NEVER`: for
    none are."""
    reservations: int = 1
    """For how many gangs of a queue devices are kept at a time."""


class Stay(Struct, kw_only=True):
    """What became of one job."""

    job: Job
    started_s: int | None = None
    ended_s: int | None = None
    promised_s: int | None = None
    """The first start that it was promised."""
    moved_later: int = 0
    """How often a promise to it was moved later."""


class Course(Deciding):
    """One simulated course of events."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        jobs: Sequence[Job],
        policy: Policy,
        judged: Judged,
    ) -> None:
        super().__init__(
            cluster.snapshot,
            Parameters(version="simulated"),
            judged,
            cluster=CLUSTER,
            patience_s=policy.patience_s,
            reservations=policy.reservations,
        )
        self.stays = {key_of(job): Stay(job=job) for job in jobs}
        self.ended = 0
        self._simulated = cluster
        self._policy = policy
        self._scheduled = 0
        self._events: list[tuple[int, int, GangKey | None]] = []
        """What happens next, and when: a gang comes or, once it started, ends; None: a
        reservation may be due."""
        for job in jobs:
            self._schedule(job.at_s, key_of(job))

    def run(self) -> Iterator[int]:
        """Let everything happen; yields the time after each step of it."""
        while self._events:
            self.now_s = self._events[0][0]
            while self._events and self._events[0][0] == self.now_s:
                gang = heappop(self._events)[2]
                if gang is not None:
                    self._happen(self.stays[gang])
            self.decide_all()
            yield self.now_s

    def _schedule(self, at_s: int, gang: GangKey | None) -> None:
        self._scheduled += 1
        heappush(self._events, (at_s, self._scheduled, gang))

    def _happen(self, stay: Stay) -> None:
        if stay.started_s is None:
            cluster = self._simulated
            self.believe(
                submit_job(stay.job, cluster.node_devices, cluster.device_class)
            )
            if self._policy.patience_s != NEVER:
                self._schedule(self.now_s + self._policy.patience_s, None)
            return
        stay.ended_s = self.now_s
        self.ended += 1
        record = self.snapshot.gangs.get(key_of(stay.job))
        if record is not None:
            outcome = ReleaseOutcome.COMPLETED
            self.believe(make_release(record, outcome, cluster=CLUSTER, epoch=1))

    # --- what is decided -------------------------------------------------------------

    def _answer(
        self,
        clear: Snapshot,
        gangs: tuple[GangPart, ...],
        quotas: tuple[QuotaPart, ...],
    ) -> Sequence[GangDecision]:
        """Decide a batch; nothing is solved for gangs that lack devices by count."""
        free = count_free(clear.inventory.pages)
        lacks = [not gang.refused and free.lacks(gang) for gang in gangs]
        pairs = zip(gangs, lacks, strict=True)
        tried = tuple(gang for gang, hopeless in pairs if not hopeless)
        answers = iter(super()._answer(clear, tried, quotas) if tried else ())
        pairs = zip(gangs, lacks, strict=True)
        return [_refuse(gang) if lacks else next(answers) for gang, lacks in pairs]

    def _note_start(self, record: GangRecord) -> None:
        stay = self.stays[record.key]
        stay.started_s = self.now_s
        self._schedule(self.now_s + stay.job.runs_s, key_of(stay.job))

    def _note_book(self, before: Book, after: Book) -> None:
        known = {each.key for each in before.kept}
        for each in after.kept:
            stay = self.stays[each.key]
            if each.key not in known and stay.promised_s is None:
                stay.promised_s = each.start_s
        for was, _ in after.late:
            self.stays[was.key].moved_later += 1


def _refuse(gang: GangPart) -> GangDecision:
    """Refuse a gang by counting: the reasons of a simulation are not read."""
    return GangDecision(
        uid=gang.uid, namespace=gang.namespace, name=gang.name, reasons=(_TAKEN,)
    )


def key_of(job: Job) -> GangKey:
    """Return the key of the gang that a job becomes."""
    return GangKey(namespace=Namespace(job.queue), uid=GangUID(job.name))
