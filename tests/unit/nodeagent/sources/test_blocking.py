"""A call that hangs is left alone, and said to hang."""

from __future__ import annotations

import threading

import pytest

from nodeagent.errors import SourceError
from nodeagent.sources.blocking import BlockingCalls


async def test_what_is_raised_comes_through() -> None:
    def fail() -> None:
        raise SourceError("test", "broken")

    with pytest.raises(SourceError, match="broken"):
        await BlockingCalls("test", 60.0).run(fail)


async def test_a_call_that_hangs_is_waited_for_before_another_begins() -> None:
    """The device answers one at a time, however late; then all goes on."""
    calls = BlockingCalls("test", 0.05)
    release = threading.Event()
    begun: list[str] = []

    def hang() -> None:
        begun.append("first")
        release.wait()

    with pytest.raises(SourceError, match="has not answered"):
        await calls.run(hang)
    with pytest.raises(SourceError, match="has not answered"):
        await calls.run(lambda: begun.append("second"))
    assert begun == ["first"]
    release.set()
    patient = BlockingCalls("test", 60.0)
    patient._thread, patient._stuck = calls._thread, calls._stuck
    await patient.run(lambda: begun.append("third"))
    assert begun == ["first", "third"]
