"""In which account each user of the bus lives, and what its client goes by."""

from __future__ import annotations

from contracts.topics import BLOBS, TOPICS
from runtime.users import (
    ACCOUNTS,
    USERS,
    api_prefix,
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
