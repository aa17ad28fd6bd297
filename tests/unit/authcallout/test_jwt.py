"""A request is believed only from a server that signed it, for us, just now."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from authcallout import jwt
from authcallout.errors import RequestError
from authcallout.jwt import BusUser, open_request
from tests.lab.callout_requests import (
    ISSUER,
    ISSUER_SEED,
    NOW_S,
    OURS,
    SERVER,
    THEIRS,
    USER,
    request,
)


def test_a_request_of_a_server_is_read() -> None:
    read = open_request(request(), THEIRS.public, OURS, NOW_S)

    said = read.connect_opts
    assert (said.user, said.password) == ("nodeagent n", "t")
    assert (read.user_nkey, read.server_id.id) == (USER, SERVER)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"key": SigningKey(b"x" * 32)}, "iss"),
        ({"alg": "none"}, "alg"),
        ({"aud": "somebody else"}, "aud"),
        ({"exp": NOW_S}, "exp"),
        ({"nats_type": "user"}, "nats.type"),
        ({"nats_user_nkey": SERVER}, "$"),
        ({"nats_server_id": {"id": SERVER, "xkey": OURS.public}}, "xkey"),
        ({"nats_server_id": {"id": USER, "xkey": THEIRS.public}}, "iss"),
        ({"iss": USER}, "$"),
        ({"exp": "soon"}, "$"),
    ],
)
def test_what_is_not_as_it_must_be_is_refused(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as refused:
        open_request(request(**changes), THEIRS.public, OURS, NOW_S)
    assert field in refused.value.field


def test_what_is_not_sealed_for_us_is_refused() -> None:
    for sealed, sender in (
        (request(), OURS.public),
        (request(), ""),
        (b"eyJ.eyJ.x", THEIRS.public),
        (b"x" * (jwt.MAX_REQUEST_BYTES + 1), THEIRS.public),
    ):
        with pytest.raises(RequestError):
            open_request(sealed, sender, OURS, NOW_S)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_hostile_words_are_refused(words: bytes) -> None:
    """Also those that somebody could seal for us."""
    with pytest.raises(RequestError):
        open_request(THEIRS.seal(words, OURS.public), THEIRS.public, OURS, NOW_S)


def _read(answer: bytes) -> dict[str, Any]:
    head, body, signature = answer.split(b".")
    verify = SigningKey(ISSUER_SEED).verify_key
    verify.verify(head + b"." + body, base64.urlsafe_b64decode(signature + b"=="))
    read: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(body + b"==="))
    return read


def test_an_answer_is_for_that_server_and_that_connection() -> None:
    asked = open_request(request(), THEIRS.public, OURS, NOW_S)
    user = BusUser(
        name="nodeagent n",
        account="AGENTS",
        publish=("inv.v1.local.n",),
        subscribe=("_INBOX.x.>",),
        expires_s=NOW_S + 60,
    )
    answer = _read(jwt.grant(asked, user, ISSUER, NOW_S))
    granted = _read(answer["nats"]["jwt"].encode())

    assert (answer["sub"], answer["aud"]) == (USER, SERVER)
    assert answer["iss"] == granted["iss"] == ISSUER.public
    assert (granted["sub"], granted["aud"]) == (USER, "AGENTS")
    assert granted["exp"] == NOW_S + 60
    assert granted["nats"]["pub"] == {"allow": ["inv.v1.local.n"]}
    assert granted["nats"]["sub"] == {"allow": ["_INBOX.x.>"]}
    assert granted["nats"]["allowed_connection_types"] == ["STANDARD"]


def test_a_refusal_grants_nothing() -> None:
    asked = open_request(request(), THEIRS.public, OURS, NOW_S)
    answer = _read(jwt.refuse(asked, "who?", ISSUER, NOW_S))

    assert answer["nats"]["error"] == "who?"
    assert "jwt" not in answer["nats"]
