"""What clients ask to be, and what a TokenReview says of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authcallout.errors import LoginRefusedError
from authcallout.login import (
    MAX_NAMESPACES,
    AgentLogin,
    PlatformLogin,
    read_login,
    read_review,
    read_token,
)

AUDIENCE = "nats.moorings.dev"
ACCOUNT = "system:serviceaccount:team-a:submitter"


@pytest.mark.parametrize(
    ("user", "login"),
    [
        ("nodeagent node-1.example", AgentLogin("node-1.example")),
        (f"platform {ACCOUNT}", PlatformLogin(ACCOUNT, ("team-a",))),
        (f"platform {ACCOUNT} b a b", PlatformLogin(ACCOUNT, ("b", "a"))),
        (f"platform {ACCOUNT} *", PlatformLogin(ACCOUNT, ("*",))),
        ("platform jane@example.com b", PlatformLogin("jane@example.com", ("b",))),
    ],
)
def test_words_are_read(user: str, login: object) -> None:
    assert read_login(user) == login


@pytest.mark.parametrize(
    "user",
    [
        "",
        "solver",
        "nodeagent",
        "nodeagent ",
        "nodeagent *",
        "nodeagent >",
        "nodeagent a b",
        "nodeagent Node",
        "nodeagent a.>",
        "platform",
        "platform ",
        "platform jane",
        f"platform {ACCOUNT} * a",
        f"platform {ACCOUNT} a.>",
        f"platform {ACCOUNT} a  b",
        f"platform {ACCOUNT} " + " ".join(f"n{i}" for i in range(MAX_NAMESPACES + 1)),
        f"platform {ACCOUNT} " + "a" * 64,
        "platform system:serviceaccount:*:x",
        "platform system:serviceaccount:a",
        "nodeagent a\n",
        "platform " + "x" * 4096,
    ],
)
def test_words_that_ask_for_nothing_there_is_are_refused(user: str) -> None:
    with pytest.raises(LoginRefusedError):
        read_login(user)


@given(st.text(max_size=300))
def test_any_words_are_read_or_refused(words: str) -> None:
    """And what is read holds names alone, never a wildcard of subjects."""
    for user in (words, f"nodeagent {words}", f"platform {ACCOUNT} {words}"):
        try:
            login = read_login(user)
        except LoginRefusedError:
            continue
        names = (login.node,) if isinstance(login, AgentLogin) else login.namespaces
        assert names
        if names != ("*",):
            assert not {"*", ">", " ", ""} & {c for n in names for c in n}
            assert all(names)


def token(body: object) -> str:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"h.{base64.urlsafe_b64encode(data).decode().rstrip('=')}.s"


def test_a_token_says_for_whom_and_until_when() -> None:
    for audience in (AUDIENCE, ["a", AUDIENCE]):
        assert read_token(token({"aud": audience, "exp": 100}), AUDIENCE, 99) == 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opaque",
        "a.b",
        "a.b.c.d",
        "é.é.é",
        token(b"[" * 4000),
        token(b"\xff"),
        token({}),
        token({"aud": AUDIENCE}),
        token({"aud": "other", "exp": 100}),
        token({"aud": AUDIENCE, "exp": 99}),
        token({"aud": AUDIENCE, "exp": -1}),
        token({"aud": AUDIENCE, "exp": 10**40}),
        token({"aud": AUDIENCE, "exp": 100, "x": "y" * 9000}),
    ],
)
def test_what_is_no_token_for_us_is_refused(text: str) -> None:
    with pytest.raises(LoginRefusedError):
        read_token(text, AUDIENCE, 99)


@given(st.text(max_size=200))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    for hostile in (text, f"h.{text}.s", token(text.encode())):
        with pytest.raises(LoginRefusedError):
            read_token(hostile, AUDIENCE, 0)


def review(**changes: Any) -> dict[str, Any]:
    node = "authentication.kubernetes.io/node-name"
    user = {"username": ACCOUNT, "uid": "u", "groups": ["g"], "extra": {node: ["n"]}}
    return {
        "authenticated": True,
        "audiences": [AUDIENCE],
        "user": {**user, **changes.pop("user", {})},
        **changes,
    }


def test_a_review_says_whose_a_token_is() -> None:
    identity = read_review(review(), AUDIENCE)

    assert (identity.username, identity.uid, identity.groups) == (ACCOUNT, "u", ("g",))
    assert identity.node == "n"


@pytest.mark.parametrize(
    "status",
    [
        {},
        review(authenticated=False),
        review(authenticated="true"),
        review(audiences=[]),
        review(audiences=None),
        review(audiences=["other"]),
        review(user={"username": ""}),
        review(user={"username": "jane doe"}),
        review(user={"username": "jane\n"}),
    ],
)
def test_a_review_that_vouches_for_nobody_is_refused(status: dict[str, Any]) -> None:
    with pytest.raises(LoginRefusedError):
        read_review(status, AUDIENCE)


def test_a_token_of_no_pod_or_of_two_nodes_has_no_node() -> None:
    node = "authentication.kubernetes.io/node-name"
    hostile: tuple[object, ...] = (None, {}, {node: []}, {node: ["a", "b"]})
    for extra in hostile:
        assert read_review(review(user={"extra": extra}), AUDIENCE).node == ""
