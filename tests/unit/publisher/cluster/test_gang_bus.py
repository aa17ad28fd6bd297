"""What is said of a gang is known at once, and corrected when the bus knows better."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.avoidance import NodesAvoided
from contracts.gang import MAX_MEMBERS
from contracts.ids import GangUID, Namespace
from contracts.messages import (
    AllocationWritten,
    ConfirmationMessage,
    Place,
    PodRef,
    SubmitGang,
)
from contracts.topics import COMMANDS, GANG_TOPICS, SUBMISSIONS, Topic
from publisher.cluster.gang_bus import GangBus
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.errors import PublishRefusedError
from runtime.run import Task
from runtime.wire import Incoming, Outgoing, TopicBatch
from tests.builders.decisions import CLUSTER, gang_allocated
from tests.builders.plans import TRAIN, record_of, submission_of
from tests.builders.pods import waiting_pod

SUBMITTED = submission_of((waiting_pod("a", gang="train", templates=["gpus"]),))
DECISION = gang_allocated()
CONFIRMED = AllocationWritten(
    cluster=DECISION.cluster, namespace=DECISION.namespace, uid=DECISION.uid, attempt=1
)


class OneGangBus:
    """Has a submission to read; stores what is published, or refuses it."""

    def __init__(self) -> None:
        self.submissions: tuple[SubmitGang, ...] = (SUBMITTED,)
        self.read_topics: list[Topic[Any]] = []
        self.published: list[Outgoing] = []
        self.refusal: PublishRefusedError | None = None
        self.last: ConfirmationMessage | None = None

    async def read(
        self, topic: Topic[Any], *_: str, stop: asyncio.Event, **__: object
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Hand over what is there."""
        assert not stop.is_set()
        self.read_topics.append(topic)
        messages: tuple[Incoming[Any], ...] = tuple(
            Incoming(
                topic=topic, names=said.address, message=said, data=b"", sequence=3
            )
            for said in (self.submissions if topic is SUBMISSIONS else ())
        )
        yield TopicBatch(messages=messages, caught_up=True)

    async def publish(self, message: Outgoing) -> int:
        """Store a message."""
        self.published.append(message)
        if self.refusal is not None:
            raise self.refusal
        return 9

    async def read_last(self, topic: Topic[Any], *names: str) -> Incoming[Any] | None:
        """Return what was confirmed last."""
        if self.last is None:
            return None
        return Incoming(
            topic=topic, names=names, message=self.last, data=b"", sequence=7
        )


class Told:
    """A GangBus, the bus behind it, and the groups that it told of."""

    def __init__(self) -> None:
        self.bus = OneGangBus()
        self.groups: list[GroupKey] = []
        self.gangs = GangBus(CLUSTER, cast("Bus", self.bus), self._changed, tuple)

    async def _changed(self, groups: Iterable[GroupKey]) -> None:
        self.groups += groups

    def tasks(self) -> dict[str, Task]:
        """Name what reads, the cluster having been read."""
        read = asyncio.Event()
        read.set()
        return self.gangs.tasks(read)

    @property
    def record(self) -> PodGangRecord:
        """What is known of the gang."""
        (record,) = self.gangs.of_group(TRAIN)
        return record


async def test_nothing_is_decided_before_all_streams_were_read() -> None:
    """Commands are read from the first one kept: our own may hide another's."""
    told = Told()
    tasks = list(told.tasks().values())
    assert len(tasks) == len(GANG_TOPICS) + 1
    for task in tasks:
        assert not told.gangs.synced.is_set()
        await task(asyncio.Event())
    assert told.gangs.synced.is_set()
    assert told.groups == [TRAIN]
    assert [t for t in told.bus.read_topics if t.every_message] == [COMMANDS]


POD = PodRef(name="a", uid="uid-a")


@pytest.mark.parametrize(
    "pods",
    [
        (),
        (POD, POD),
        tuple(PodRef(name=f"p{n}", uid=str(n)) for n in range(MAX_MEMBERS + 1)),
    ],
    ids=["none", "twice", "too many"],
)
async def test_a_submission_without_pods_of_its_own_is_refused_alone(
    pods: tuple[PodRef, ...],
) -> None:
    """What else was submitted is taken in."""
    told = Told()
    hollow = replace(
        SUBMITTED,
        uid=GangUID("hollow"),
        places={"worker": (Place(pods=pods),)},
        gang=replace(
            SUBMITTED.gang, metadata=replace(SUBMITTED.gang.metadata, labels={})
        ),
    )
    told.bus.submissions = (hollow, SUBMITTED)
    for task in told.tasks().values():
        await task(asyncio.Event())
    assert told.groups == [TRAIN]
    assert list(told.gangs.groups()) == [TRAIN]


async def test_what_a_gang_avoids_is_known_once_it_is_said() -> None:
    told = Told()
    message = NodesAvoided(
        cluster=CLUSTER, namespace=Namespace("ml"), name="train", recreations=1
    )
    await told.gangs.say(message, ())
    assert told.bus.published[0].subject == f"avoid.v1.{CLUSTER}.ml.train"
    assert told.gangs.avoided("ml", "train") == message
    assert told.gangs.avoided("ml", "other") is None
    await told.gangs.say(replace(message, recreations=0), ())
    assert told.gangs.avoided("ml", "train") is None


async def test_what_is_said_is_known_before_it_is_read() -> None:
    """With the sequence that the stream gave it."""
    told = Told()
    await told.gangs.say(SUBMITTED, ())
    assert told.record.submission_sequence == 9
    assert told.bus.published[0].expected_last_subject_sequence is None


async def test_a_confirmation_is_only_the_next_one() -> None:
    """It follows what was known when it was planned; 0: nothing was."""
    told = Told()
    record = record_of(SUBMITTED, DECISION).with_confirmation(CONFIRMED, 4)
    await told.gangs.say(CONFIRMED, [record])
    await told.gangs.say(CONFIRMED, ())
    expected = [sent.expected_last_subject_sequence for sent in told.bus.published]
    assert expected == [4, 0]


async def test_who_was_slower_takes_over_what_the_bus_has() -> None:
    """Also that it has nothing any more."""
    told = Told()
    await told.gangs.say(SUBMITTED, ())
    told.bus.refusal = PublishRefusedError("conf", "stale", "no")
    told.bus.last = CONFIRMED
    await told.gangs.say(CONFIRMED, ())
    assert told.record.confirmation_sequence == 7
    told.bus.last = None
    await told.gangs.say(CONFIRMED, ())
    assert (told.record.confirmation, told.record.confirmation_sequence) == (None, 0)


async def test_a_submission_that_is_there_already_is_as_good() -> None:
    """It has no place in the stream yet; any other refusal is an error."""
    told = Told()
    told.bus.refusal = PublishRefusedError("sub", "exists", "no")
    await told.gangs.say(SUBMITTED, ())
    assert told.record.submission_sequence == 0
    told.bus.refusal = PublishRefusedError("sub", "other", "no")
    with pytest.raises(PublishRefusedError):
        await told.gangs.say(SUBMITTED, ())
