"""Who may look and who may change: by token, host and origin."""

from __future__ import annotations

import pytest

from moorings.console.access import (
    HEADERS,
    ConsoleRight,
    Tokens,
    is_local,
    is_same_origin,
)

TOKENS = Tokens(look="look-token", change="change-token")


@pytest.mark.parametrize(
    ("header", "right"),
    [
        ("Bearer look-token", ConsoleRight.LOOK),
        ("bearer look-token", ConsoleRight.LOOK),
        ("Bearer change-token", ConsoleRight.CHANGE),
        ("Bearer look-toke", ConsoleRight.NONE),
        ("Bearer ", ConsoleRight.NONE),
        ("Basic look-token", ConsoleRight.NONE),
        ("look-token", ConsoleRight.NONE),
        ("", ConsoleRight.NONE),
        ("Bearer lóok-token", ConsoleRight.NONE),
        ("Bearer \udcff", ConsoleRight.NONE),
    ],
)
def test_a_right_is_what_the_token_is_for(header: str, right: ConsoleRight) -> None:
    assert TOKENS.right_of(header) is right


def test_without_a_token_for_changes_an_empty_one_changes_nothing() -> None:
    assert Tokens(look="look-token").right_of("Bearer ") is ConsoleRight.NONE


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:8440", True),
        ("localhost:1", True),
        ("[::1]:8440", True),
        ("LOCALHOST", True),
        ("rebound.example.com:8440", False),
        ("127.0.0.1.example.com", False),
        ("localhost@example.com", False),
        ("[", False),
        ("", False),
    ],
)
def test_a_name_that_points_here_is_no_host_of_ours(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        ("", True),
        ("http://127.0.0.1:8440", True),
        ("http://127.0.0.1:8441", False),
        ("https://127.0.0.1:8440", False),
        ("null", False),
        ("http://example.com", False),
    ],
)
def test_only_our_own_page_asks(origin: str, same: bool) -> None:
    assert is_same_origin(origin, "127.0.0.1:8440") is same


def test_no_text_becomes_a_script() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
