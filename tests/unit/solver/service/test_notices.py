"""Nobody waits without a reason, and each is told once."""

from __future__ import annotations

from contracts.allocation import Rule
from contracts.messages import GangPending
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.quotas import Quotas
from solver.service.notices import MOST, QUEUED_S, Notices
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import gang
from tests.builders.problems import CLUSTER, snapshot_of

EPOCH = 3


class Waiting:
    """Gangs that wait, a queue, and what they are told."""

    def __init__(self, gangs: int, *quotas: str) -> None:
        self.queue = GangQueue(Quotas.read(quotas))
        self.notices = Notices(CLUSTER, self.queue)
        wanted = [
            gang(
                name=f"g{number}",
                namespace="a",
                uid=f"00000000-0000-4000-8000-{number:012}",
            )
            for number in range(gangs)
        ]
        self.snapshot: Snapshot = snapshot_of({}, wanted)
        for record in sorted(
            self.snapshot.waiting.values(),
            key=lambda record: record.submission_sequence,
        ):
            self.queue.follow(record)
            self.notices.follow(record, 0.0)

    def told(self, now: float) -> list[str]:
        """Publish what is to be said, and name who is told what."""
        said = self.notices.make(self.snapshot, now, EPOCH)
        for message in said:
            self.believe(message)
        return [f"{message.name}: {message.reasons[0].rule}" for message in said]

    def believe(self, message: GangPending) -> None:
        """Follow what was published."""
        self.snapshot = apply(self.snapshot, message, sequence=1)
        record = self.snapshot.gangs.get(message.key)
        assert record is not None
        self.queue.follow(record)
        self.notices.follow(record, 0.0)

    def try_some(self, gangs: int) -> list[str]:
        """Choose a batch, and name who is in."""
        batch = self.queue.choose(self.snapshot, BatchLimits(gangs=gangs))
        return [record.name for record in batch]


def test_who_was_not_tried_for_long_is_told_once() -> None:
    """Those who were tried hear it from their solve, and most are soon enough."""
    world = Waiting(3)
    assert world.told(QUEUED_S - 0.1) == []
    assert world.try_some(1) == ["g0"]
    assert world.told(QUEUED_S) == ["g1: Queued", "g2: Queued"]
    assert world.told(QUEUED_S * 99) == []
    assert world.try_some(9) == ["g1", "g2"], "it has its turn as before"


def test_who_has_no_place_is_told_the_quota_and_what_is_used() -> None:
    """At once, and once."""
    world = Waiting(3, "a=1")
    (first, _) = world.notices.make(world.snapshot, 0.0, EPOCH)
    assert (first.epoch, first.reasons[0].subject) == (EPOCH, "namespace a")
    assert (
        first.reasons[0].message == "3 of its gangs wait; the 1 most urgent are tried"
    )
    assert first.reasons[0].facts == {"waiting": 3, "limit": 1}
    assert world.told(0.0) == [
        f"g{number}: {Rule.GANG_QUOTA.value}" for number in (1, 2)
    ]
    assert world.told(QUEUED_S) == ["g0: Queued"]
    assert world.told(QUEUED_S) == []


def test_a_crowd_is_told_in_turns() -> None:
    """A message to the bus has a bound."""
    world = Waiting(MOST + 1)
    assert len(world.told(QUEUED_S)) == MOST
    assert len(world.told(QUEUED_S)) == 1
