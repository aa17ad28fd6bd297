"""A gang that cannot be decided delays others little; what is said of decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log2
from typing import Any, cast

import pytest
from msgspec import structs
from msgspec.structs import replace
from structlog.testing import capture_logs

from contracts.allocation import DeviceAllocationConfiguration, Reason, Rule
from contracts.features import Features
from contracts.ids import ClusterName, GangUID, Namespace, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import GangAllocated, GangPending
from runtime.errors import BusUnavailableError, PublishRefusedError
from runtime.refusals import Refusals
from solver.decision import GangDecision
from solver.errors import UndecidedError
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import GangPart
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.service.attempts import Attempts
from solver.service.decide import Changes, Decider
from solver.service.messages import address_decision, make_decision
from solver.service.reserving import Reserving
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import decisions, gang, member, member_claim, request
from tests.builders.problems import CLUSTER, snapshot_of

GUARD_S = 8.0
SOLVE = SolveID("s")
FAILURES = [
    UndecidedError(SOLVE, "the worker process ended"),
    ValueError("a Problem that cannot be made"),
    MemoryError(),
    PublishRefusedError("dec", "other", "too large"),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Write no tracebacks."""
    with capture_logs():
        yield


class Deciding:
    """Decides all batches that no bad gang is in, and notes what it was asked."""

    cluster: ClusterName = CLUSTER

    def __init__(self, failure: Exception, *bad: str) -> None:
        self.failure = failure
        self.bad = bad
        self.asked: list[int] = []
        self.guards: list[float] = []
        self.unproven: list[str] = []
        self.warmed = 0

    def resolve(
        self, snapshot: Snapshot, batch: Sequence[GangRecord]
    ) -> tuple[GangPart, ...]:
        """Resolve as the decider does."""
        return resolve_gangs(snapshot, batch, Features())

    async def decide(
        self,
        _: Snapshot,
        batch: Sequence[GangRecord],
        guard_s: float,
        explain: Callable[[GangRecord], tuple[Reason, ...]],
    ) -> Changes:
        """Decide them all, or none."""
        assert not any(map(explain, batch))
        self.asked.append(len(batch))
        self.guards.append(guard_s)
        if any(record.name in self.bad for record in batch):
            raise self.failure
        return [
            (
                GangAllocated(
                    cluster=CLUSTER,
                    namespace=record.namespace,
                    name=record.name,
                    uid=record.uid,
                    solve=SOLVE,
                    attempt=1,
                    epoch=1,
                ),
                1,
            )
            for record in batch
        ]

    async def warm(self, _: Snapshot) -> None:
        """Read nothing."""
        self.warmed += 1

    async def publish_unproven(
        self, record: GangRecord, solve: SolveID, why: str
    ) -> Changes:
        """Say why it waits."""
        self.unproven.append(record.name)
        waiting = GangPending(
            cluster=CLUSTER,
            namespace=record.namespace,
            name=record.name,
            uid=record.uid,
            solve=solve,
            attempt=0,
            epoch=1,
            reasons=(Reason(rule=Rule.NOT_PROVEN, message=why),),
        )
        return [(waiting, 1)]


class KeepingNothing:
    """Nothing is kept for anybody."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def clear(self, _: Sequence[GangRecord]) -> Snapshot:
        """All of the cluster may be used."""
        return self._snapshot()

    def explain(self, _: GangRecord) -> tuple[Reason, ...]:
        """Nobody waits for what is kept."""
        return ()


class Trial:
    """Gangs that wait, and who decides them."""

    def __init__(self, gangs: int, deciding: Deciding) -> None:
        self.deciding = deciding
        self.rests: dict[GangUID, float] = {}
        asked = [
            gang(
                member(member_claim(request(count=1 + number))),
                name=f"g{number}",
                uid=f"00000000-0000-4000-8000-{number:012}",
            )
            for number in range(gangs)
        ]
        self.snapshot = snapshot_of({}, asked)
        self.attempts = Attempts(
            cast("Decider", deciding),
            Refusals(),
            guard_s=GUARD_S,
            snapshot=lambda: self.snapshot,
            reserving=cast("Reserving", KeepingNothing(lambda: self.snapshot)),
            believe=self._believe,
            rest=self._rest,
        )

    def _believe(self, changes: Changes) -> None:
        for message, sequence in changes:
            self.snapshot = apply(self.snapshot, message, sequence=sequence)

    def _rest(self, record: GangRecord, until: float) -> None:
        self.rests[record.uid] = until

    async def step(self) -> None:
        """Decide all that wait, as the service does, whoever rests."""
        await self.attempts.decide(choose_batch(self.snapshot, BatchLimits()))

    @property
    def waiting(self) -> set[str]:
        """The names of those that are not decided."""
        return {record.name for record in self.snapshot.waiting.values()}


@pytest.mark.parametrize("failure", FAILURES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("bad", ["g0", "g100", "g255"])
async def test_all_but_the_gang_that_fails_are_decided(
    failure: Exception, bad: str
) -> None:
    """With two solves each time that the batch is halved."""
    trial = Trial(256, Deciding(failure, bad))
    await trial.step()
    assert trial.waiting == {bad}
    assert trial.deciding.unproven == [bad]
    assert len(trial.rests) == 1
    assert len(trial.deciding.asked) <= 1 + 2 * log2(256)
    assert sum(trial.deciding.guards) < 2 * GUARD_S + 2 * log2(256) * GUARD_S / 8 + 4


async def test_who_failed_alone_is_not_put_into_a_batch_again() -> None:
    """The others of the next batch are decided at once, and the gang still rests."""
    trial = Trial(8, Deciding(UndecidedError(SOLVE, "lost"), "g3"))
    await trial.step()
    trial.deciding.asked.clear()
    late = Trial(9, trial.deciding).snapshot
    known = set(trial.snapshot.gangs)
    for record in late.waiting.values():
        if record.key not in known and record.submission is not None:
            trial.snapshot = apply(trial.snapshot, record.submission, sequence=99)
    trial.rests.clear()
    await trial.step()
    assert trial.deciding.asked == [1]
    assert trial.waiting == {"g3"}
    assert len(trial.rests) == 1


async def test_that_the_bus_is_away_is_nobodys_fault() -> None:
    """Nothing is halved, and nobody rests."""
    error = BusUnavailableError("publish", "away")
    trial = Trial(8, Deciding(error, "g3"))
    with pytest.raises(BusUnavailableError):
        await trial.step()
    assert trial.deciding.asked == [8]
    assert not trial.rests


async def test_a_deposed_solver_tries_no_halves() -> None:
    """Another one leads."""
    error = PublishRefusedError("fence", "stale", "another leads")
    trial = Trial(8, Deciding(error, "g3"))
    with pytest.raises(PublishRefusedError):
        await trial.step()
    assert trial.deciding.asked == [8]


async def test_a_gang_that_cannot_be_asked_for_more_stays_as_it_is() -> None:
    """It rests like any other that failed alone, and nobody says that it waits."""
    deciding = Deciding(RuntimeError("no answer"))
    trial = Trial(1, deciding)
    (record,) = trial.snapshot.waiting.values()
    await trial.step()
    decided = trial.snapshot.gangs.get(record.key)
    assert decided is not None
    assert isinstance(decided.decision, GangAllocated)
    fewer = structs.replace(decided.decision, growing={"worker": 1})
    trial.snapshot = apply(trial.snapshot, fewer, sequence=2)
    deciding.bad = (record.name,)
    await trial.attempts.decide(list(trial.snapshot.growing.values()))
    assert trial.rests
    assert not deciding.unproven
    assert record.key in trial.snapshot.growing


def test_an_unchanged_reason_is_not_repeated() -> None:
    """Whoever waits is told once why."""
    reasons = (Reason(rule=Rule.TAKEN, message="x"),)
    uid = GangUID("u")
    said = GangPending(
        cluster=CLUSTER,
        namespace=Namespace("ns"),
        name="g",
        uid=uid,
        solve=SolveID("s"),
        attempt=0,
        epoch=1,
        reasons=reasons,
    )
    record = GangRecord(uid=uid, namespace=Namespace("ns"), decision=said)
    again = GangDecision(uid=uid, name="g", reasons=reasons)
    fields = {"cluster": CLUSTER, "solve": SolveID("t"), "epoch": 1}
    assert make_decision(again, record, **fields) is None  # type: ignore[arg-type]  # ids of one batch
    other = GangDecision(uid=uid, name="g", reasons=(Reason(rule=Rule.JOINT),))
    assert isinstance(make_decision(other, record, **fields), GangPending)  # type: ignore[arg-type]  # ids of one batch


def test_a_decision_that_the_bus_cannot_take_waits_and_says_why() -> None:
    """Too many bytes are a reason like any other."""
    config = DeviceAllocationConfiguration(
        source="FromClaim", opaque={"parameters": "x" * 10_000}
    )
    decision = decisions.gang_allocated(pods=1)
    (one,) = decision.members
    (claim,) = one.claims
    devices = replace(claim.allocation.devices, config=(config,) * 32)
    claim = replace(claim, allocation=replace(claim.allocation, devices=devices))
    fits, _ = address_decision(
        replace(decision, members=(replace(one, claims=(claim,)),))
    )
    assert isinstance(fits, GangAllocated)
    heavy = (replace(one, claims=(claim,)),) * 27
    message, addressed = address_decision(replace(decision, attempt=3, members=heavy))
    assert isinstance(message, GangPending)
    assert message.attempt == 2
    assert "bytes" in message.reasons[0].message
    assert len(addressed.data) < 1000


def test_a_gang_that_grows_is_decided_again_with_all_its_pods() -> None:
    """In the order of its members; one that does not is not told so."""
    first, second, third = (decisions.member_allocated(index=n) for n in range(3))
    wanted = gang(member(count=4, min_count=1))
    before = replace(decisions.gang_allocated(first, attempt=4), growing={"worker": 3})
    record = GangRecord.of(before).apply(decisions.submission(wanted), 1)
    record = record.apply(before, 2)
    answer = GangDecision(uid=before.uid, name="train", members=(third, second))
    fields: Any = {"cluster": CLUSTER, "solve": SolveID("t"), "epoch": 2}
    assert make_decision(answer, record, **fields) == replace(
        before,
        members=(first, second, third),
        growing={"worker": 1},
        kept={"worker": 1},
        attempt=5,
        solve=SolveID("t"),
        epoch=2,
    )
    for reason in (Reason(rule=Rule.GROWING), Reason(rule=Rule.INVALID)):
        none = replace(answer, members=(), reasons=(reason,), rejected=True)
        assert make_decision(none, record, **fields) is None
