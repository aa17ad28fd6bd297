"""Gangs are read from four streams, and found by name, by namespace and by uid."""

from __future__ import annotations

from typing import Any, cast

import pytest

from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.lifecycle import LifecycleMessage
from contracts.messages import AllocationWritten, GatesOpened, SubmissionMessage
from contracts.topics import CONFIRMATIONS, DECISIONS, SUBMISSIONS, Topic
from moorings.bus_client import Client
from moorings.errors import BadInputError, NotStoredError, UnknownNameError
from runtime.bus.bus import Bus
from runtime.errors import BusFullError
from runtime.wire import Outgoing
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated, gang_released, submission
from tests.builders.stored_messages import StoredMessages

ONE, TWO = GangUID("00000000-0000-4000-8000-000000000001"), GangUID(builders.UID)
DECISION = gang_allocated()
IDS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}


def train(uid: str, namespace: str = builders.NAMESPACE) -> SubmissionMessage:
    """Submit a gang of the name `train`."""
    return submission(builders.gang(uid=uid, namespace=namespace), uid=uid)


class FullBus:
    """A bus that has no room."""

    async def publish(self, message: Outgoing) -> int:
        """Take nothing."""
        raise BusFullError(message.subject, "maximum bytes exceeded")


async def test_what_was_not_stored_is_not_said_to_wait() -> None:
    """Neither is it said to have been submitted before."""
    full = Client(cast("Bus", FullBus()), CLUSTER)
    with pytest.raises(NotStoredError, match="gang/train was not stored"):
        await full.submit(builders.gang())


def client(*messages: tuple[Topic[Any], LifecycleMessage]) -> Client:
    """Make a client of a bus with these messages."""
    return Client(cast("Bus", StoredMessages(*messages)), CLUSTER)


async def test_gangs_come_oldest_first_with_all_that_was_said_of_them() -> None:
    """One of which only decisions are left is none to show."""
    other = gang_allocated(uid="00000000-0000-4000-8000-00000000000f")
    gangs = await client(
        (DECISIONS, DECISION),
        (DECISIONS, other),
        (SUBMISSIONS, train(TWO)),
        (SUBMISSIONS, train(ONE)),
    ).fetch_gangs()
    assert [(gang.uid, gang.attempt) for gang in gangs] == [(TWO, 1), (ONE, 0)]


async def test_a_name_means_who_is_alive() -> None:
    """And the last one where nobody is; a uid means just that one."""
    over = (DECISIONS, gang_released(TWO))
    one, two = (SUBMISSIONS, train(ONE)), (SUBMISSIONS, train(TWO))
    (living,) = await client(two, one, over).find_gangs("train")
    assert living.uid == ONE
    (last,) = await client(two, over).find_gangs("train")
    assert last.uid == TWO
    assert (await client(two, one).find_gang(TWO)).uid == TWO


async def test_a_name_of_several_gangs_is_not_one() -> None:
    """A namespace before the name, or beside it, may say which."""
    both = client((SUBMISSIONS, train(ONE)), (SUBMISSIONS, train(TWO, "team-b")))
    with pytest.raises(UnknownNameError, match="team-b/train, Pending, "):
        await both.find_gang("train")
    assert (await both.find_gang("team-b/train")).uid == TWO
    assert (await both.find_gang("train", builders.NAMESPACE)).uid == ONE


async def test_the_beginning_of_a_uid_names_its_gang() -> None:
    """Unless others begin so, or it is too short to be meant."""
    both = client((SUBMISSIONS, train(ONE)), (SUBMISSIONS, train(TWO)))
    assert (await both.find_gang(TWO[:6])).uid == TWO
    with pytest.raises(UnknownNameError):
        await both.find_gang(TWO[:3])


async def test_a_name_that_is_nearly_right_is_told() -> None:
    """With those that look like it."""
    with pytest.raises(UnknownNameError, match="train"):
        await client((SUBMISSIONS, train(ONE))).find_gang("trian")


async def test_what_was_written_is_of_the_last_attempt() -> None:
    """Even once its gates are open, which is said later."""
    older = AllocationWritten(**IDS, attempt=1)
    newer = AllocationWritten(**IDS, attempt=2)
    opened = GatesOpened(**IDS, attempt=2, state=0)
    said = client(
        (SUBMISSIONS, train(TWO)),
        (DECISIONS, gang_allocated(attempt=2)),
        (CONFIRMATIONS, older),
        (CONFIRMATIONS, newer),
        (CONFIRMATIONS, opened),
    )
    gangs = await said.fetch_gangs()
    assert await said.fetch_written(gangs) == {newer.key: newer}


async def test_a_submission_sent_twice_is_one() -> None:
    """By its uid; one without gets a new one each time."""
    sender = client()
    gang = builders.gang(uid=ONE)
    assert await sender.submit(gang) == (ONE, True)
    assert await sender.submit(gang) == (ONE, False)
    nameless: Gang = builders.gang(uid="")
    first, _ = await sender.submit(nameless)
    second, accepted = await sender.submit(nameless)
    assert accepted
    assert first != second


async def test_what_is_not_valid_is_not_sent() -> None:
    """It is said which gang, and what is wrong."""
    bad = builders.gang(builders.member(count=0))
    with pytest.raises(BadInputError, match="Gang train"):
        await client().submit(bad)
