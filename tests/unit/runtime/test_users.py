"""In which account each user of the bus lives, and what its client goes by."""

from __future__ import annotations

from contracts.topics import BLOBS, TOPICS
from runtime.bus.permissions import MAX_CONSUMERS
from runtime.users import (
    ACCOUNTS,
    BUCKET_CONSUMERS,
    PLATFORM_BUCKETS,
    PLATFORM_CONSUMERS,
    USERS,
    VIEWER_CONSUMERS,
    api_prefix,
    consumer_names,
    inbox_prefix,
    is_outside,
)


def test_the_users_are_those_of_the_table() -> None:
    named = {
        user for row in (*TOPICS, BLOBS) for user in (*row.senders, *row.receivers)
    }

    assert named == set(USERS)


def test_only_the_solver_and_the_publisher_are_beside_the_streams() -> None:
    """Whoever is there stores anything anywhere, by a reply subject."""
    assert {u for u in USERS if not is_outside(u)} == {"solver", "publisher"}


def test_who_sends_nothing_shares_no_account_with_who_sends() -> None:
    """Else its answers could be stored as what the other may send."""
    mates = [user for user in USERS if ACCOUNTS[user] == ACCOUNTS["viewer"]]

    assert mates == ["viewer"]


def test_a_client_goes_by_its_user() -> None:
    """Nobody in particular is in the only account that such a server has."""
    assert api_prefix("") == api_prefix("solver") == "$JS.API"
    assert api_prefix("platform") == "JS.CORE.API"
    assert (inbox_prefix("viewer"), inbox_prefix("")) == ("_INBOX.viewer", "_INBOX")


def test_a_platform_with_a_token_has_names_by_who_it_is() -> None:
    """However it asks; and however many there are, their names are not more."""
    one = consumer_names("platform system:serviceaccount:a:b *")
    assert one == consumer_names("platform system:serviceaccount:a:b a b")
    assert len(set(one)) == BUCKET_CONSUMERS

    many = {n for i in range(5_000) for n in consumer_names(f"platform user-{i} *")}
    assert len(many) == PLATFORM_BUCKETS * BUCKET_CONSUMERS
    assert set(one) < many
    assert not many & {*consumer_names("platform"), *consumer_names("viewer")}


def test_services_have_consumers_that_nobody_outside_can_take() -> None:
    """Of what nats-server has for a stream; a service needs a handful."""
    outside = {*consumer_names("platform"), *consumer_names("viewer")}
    assert len(outside) == PLATFORM_CONSUMERS + VIEWER_CONSUMERS
    outsiders = len(outside) + PLATFORM_BUCKETS * BUCKET_CONSUMERS
    assert MAX_CONSUMERS - outsiders >= 1_024
    assert not any(map(consumer_names, ("solver", "publisher", "nodeagent x", "")))
