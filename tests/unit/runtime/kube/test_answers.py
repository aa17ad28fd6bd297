from __future__ import annotations

import json

import pytest

from runtime.kube.answers import error_of
from runtime.kube.errors import (
    ApiError,
    InvalidError,
    PermissionDeniedError,
    ThrottledError,
    UnavailableError,
)


@pytest.mark.parametrize(
    ("header", "seconds", "waits_s"), [("7", 0, 7.0), (None, 3, 3.0), (None, 0, 1.0)]
)
def test_who_is_throttled_learns_for_how_long(
    header: str | None, seconds: int, waits_s: float
) -> None:
    """By the header, by the body, or a second."""
    body = json.dumps({"details": {"retryAfterSeconds": seconds}}).encode()
    error = error_of("list Pod", 429, body, header)
    assert isinstance(error, ThrottledError)
    assert error.retry_after_s == waits_s


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"<html>bad gateway</html>", b"[]"])
def test_an_answer_of_somebody_else_is_no_traceback(body: bytes) -> None:
    """A proxy's page, or nothing: the request names itself."""
    error = error_of("list Pod", 502, body)
    assert isinstance(error, UnavailableError)
    assert str(error).startswith("list Pod: ")


def test_refused_credentials_are_a_permission_and_tried_again_slowly() -> None:
    """Nobody knows us, so no rule can be named."""
    error = error_of("get Pod a/b", 401, b'{"message": "Unauthorized"}')
    assert isinstance(error, PermissionDeniedError)
    assert error.rule == ""
    assert error.retry_after_s is not None
    assert "credentials" in str(error)


def test_what_admission_forbids_is_no_missing_rule() -> None:
    """A namespace that ends, a quota: granting something would not help."""
    message = 'pods "a" is forbidden: unable to create new content in namespace x'
    error = error_of("create Pod a", 403, json.dumps({"message": message}).encode())
    assert isinstance(error, InvalidError)
    assert not isinstance(error, PermissionDeniedError)


def test_words_of_a_huge_refusal_are_kept_where_they_matter() -> None:
    """A strict decoder quotes the whole object before it says what is wrong."""
    words = 'strict decoding error: unknown field "spoc"'
    body = json.dumps({"message": "x" * 10_000 + words}).encode()
    error: ApiError = error_of("patch Gang a/b", 422, body)
    assert error.reason == words
