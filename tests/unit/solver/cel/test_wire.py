"""What a sandbox answers is read as one type, and as nothing else."""

from __future__ import annotations

import pytest

from contracts.errors import DecodeError
from solver.cel.wire import REPLY, Reply
from solver.selectors.table import Verdict
from tests.builders import attribute


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(value=False),
        Verdict(error="CEL runtime error: no such key: x"),
        Verdict(attribute=attribute([1, 2])),
    ],
)
def test_a_reply_is_read_back_as_it_was_written(verdict: Verdict) -> None:
    """With whether the process wants to be replaced."""
    reply = Reply(verdict=verdict, is_tired=True)
    assert REPLY.decode(REPLY.encode(reply)) == reply


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"verdict": 1}', b"\x80\x04N."])
def test_what_is_no_reply_is_refused(data: bytes) -> None:
    """Whoever breaks out of an expression gets nothing read but verdicts."""
    with pytest.raises(DecodeError):
        REPLY.decode(data)
