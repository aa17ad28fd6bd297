"""What nobody can read is cut out of an answer, and the rest is as it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.kube.answers import decode_answer
from runtime.kube.errors import UnavailableError
from runtime.kube.lenient import ALTERED, cut_unreadable
from tests.draw.strategies import JSON

OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 9000 + b"]" * 9000,
        b'{"a":' * 9000 + b"1" + b"}" * 9000,
        b'[{"a":' * 4000 + b"1" + b"}]" * 4000,
        b"1e999999",
        b"-9" + b"9" * 5000,
        b'"\\ud800"',
        b'"\\udc00\\ud83d"',
        b'"\xff"',
    ],
    ids=["lists", "maps", "both", "exponent", "digits", "half", "turned", "bytes"],
)
def test_one_object_is_marked_and_the_others_are_read(value: bytes) -> None:
    """Before it and behind it, to the last field."""
    plain = b'{"k":"a","n":[1,{"t":"\\\\ud800 \\ud83d\\ude00"}]}'
    hostile = b'{"k":"b","x":' + value + b',"y":[{"z":2}]}'
    body = b"[" + b",".join((plain, hostile, plain)) + b"]"
    first, marked, last = decode_answer("list", OBJECTS, body, lambda answer: answer)
    assert first == last == json.loads(plain)
    assert ALTERED in marked
    assert (marked["k"], marked["y"]) == ("b", [{"z": 2}])


def test_what_is_no_json_at_all_is_no_answer() -> None:
    """As when a proxy speaks in the API server's place."""
    for body in (b"<html>", b"[{", b'["a'):
        with pytest.raises(UnavailableError):
            decode_answer("list", OBJECTS, body)


@given(JSON)
def test_what_can_be_read_is_left_as_it_is(value: object) -> None:
    """Byte by byte, whatever it is."""
    body = json.dumps(value).encode()
    assert cut_unreadable(body) == body
    body = msgspec.json.encode(value)
    assert cut_unreadable(body) == body


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    """Whatever comes, it is an answer or none."""
    cut_unreadable(body)
