"""A publisher that starts keeps nothing of a gang that is over and has no pods left."""

from __future__ import annotations

import pytest

from contracts.ids import ClusterName, GangUID, Namespace
from contracts.lifecycle import LifecycleMessage
from contracts.messages import (
    AllocationWritten,
    ClaimsReleased,
    GangRejected,
    GangReleased,
    ReleaseGang,
    ReleaseOutcome,
)
from publisher.cluster.past_confirmations import PastConfirmations
from publisher.gangs.view import GroupKey
from tests.builders.decisions import gang_allocated

CLUSTER, TEAM, UID = ClusterName("c"), Namespace("team"), GangUID("u")
ENDED = GangReleased(
    cluster=CLUSTER,
    namespace=TEAM,
    uid=UID,
    name="train",
    epoch=1,
    outcome=ReleaseOutcome.COMPLETED,
)
REJECTED = GangRejected(
    cluster=CLUSTER, namespace=TEAM, uid=UID, name="train", epoch=1, reasons=()
)
CONFIRMED = ClaimsReleased(cluster=CLUSTER, namespace=TEAM, uid=UID)
COMMAND = ReleaseGang(cluster=CLUSTER, namespace=TEAM, uid=UID)


def taken(
    past: PastConfirmations, *messages: LifecycleMessage
) -> list[LifecycleMessage]:
    """Take messages in; returns those that are to be applied."""
    return [
        applied
        for sequence, message in enumerate(messages, start=1)
        for applied, _ in past.take(message, sequence)
    ]


def starting(*shown: GroupKey) -> PastConfirmations:
    """Make one whose cluster has these groups."""
    return PastConfirmations(CLUSTER, lambda: shown)


@pytest.mark.parametrize("said", [(CONFIRMED, ENDED), (REJECTED,)])
def test_nothing_is_kept_of_who_is_over_and_gone(
    said: tuple[LifecycleMessage, ...],
) -> None:
    """And nothing else that was said of it is read."""
    past = starting(GroupKey("other", "train"), GroupKey("team", "another"))
    assert taken(past, *said, COMMAND) == []
    assert past.skips(f"submit.v1.c.{TEAM}.{UID}")
    assert list(past.end_decisions(lambda _: True)) == []


@pytest.mark.parametrize(
    "group",
    [
        GroupKey("team", "train"),
        GroupKey("team", "train", lone=True),
        GroupKey("team", "train", api="Job"),
    ],
)
def test_who_has_pods_left_is_kept(group: GroupKey) -> None:
    """Whatever they belong together by; with what was confirmed of its end."""
    past = starting(group)
    assert taken(past, CONFIRMED, ENDED, COMMAND) == [ENDED, CONFIRMED, COMMAND]
    assert not past.skips(f"submit.v1.c.{TEAM}.{UID}")


def test_who_holds_something_is_kept() -> None:
    """Its end is not confirmed, so that is still to be done."""
    written = AllocationWritten(cluster=CLUSTER, namespace=TEAM, uid=UID, attempt=1)
    assert taken(starting(), written, ENDED) == [written, ENDED]
    assert taken(starting(), ENDED) == [ENDED]


def test_what_is_confirmed_while_decisions_are_read_is_not_lost() -> None:
    """The gang lived when its decision was read, and ended since."""
    lives = gang_allocated()
    done = ClaimsReleased(
        cluster=lives.cluster, namespace=lives.namespace, uid=lives.uid
    )
    past = PastConfirmations(lives.cluster, tuple)
    assert taken(past, lives, done) == [lives]
    assert [m for m, _ in past.end_decisions(lambda gang: gang == lives.key)] == [done]


def test_of_who_was_removed_in_part_nothing_is_kept() -> None:
    """Only what was confirmed is left of it."""
    past = starting()
    assert taken(past, CONFIRMED) == []
    assert list(past.end_decisions(lambda _: False)) == []


def test_once_all_was_read_everything_counts() -> None:
    """Who ends now has pods that the publisher works on."""
    past = starting()
    list(past.end_decisions(lambda _: False))
    past.close()
    assert taken(past, ENDED, CONFIRMED, REJECTED) == [ENDED, CONFIRMED, REJECTED]
