"""What is asked of a stream's leader is answered by nobody else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from runtime.bus.jetstream import (
    ClusterInfo,
    JetStreamError,
    PeerInfo,
    StreamInfo,
    StreamState,
    read_server_time,
)


class Servers:
    """The servers of a stream, of which at first none leads it."""

    def __init__(self) -> None:
        self._answers = [("", "1970-01-01T00:00:09Z"), ("a", "1970-01-01T00:00:05Z")]

    def api_subject(self, operation: str) -> str:
        """Name a request."""
        return operation

    async def request(self, *_: Any, **__: Any) -> Any:
        """Answer as the server `a` of two."""
        leader, time = self._answers.pop(0)
        info = {
            "config": {},
            "state": {},
            "cluster": {"leader": leader, "replicas": [{"name": "b"}]},
            "ts": time,
        }
        return SimpleNamespace(data=msgspec.json.encode(info))


async def test_the_time_is_the_leader_s() -> None:
    """A copy that nobody leads answers for itself, with its own clock."""
    assert await read_server_time(cast("Any", Servers()), "S") == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (JetStreamError(503, 10008, "system temporarily unavailable"), True),
        (JetStreamError(400, 10005, "no suitable peers, peer offline"), True),
        (JetStreamError(400, 10005, "no suitable peers, tags not matched"), False),
        (JetStreamError(404, 10059, "stream not found"), False),
    ],
)
def test_what_passes_is_asked_again(error: JetStreamError, *, is_passing: bool) -> None:
    assert error.passing is is_passing


@pytest.mark.parametrize(
    ("leader", "heard_s", "counts"),
    [
        ("a", (), True),
        ("a", (0.9, 0.9), True),
        ("a", (0.9, 60.0), True),
        ("a", (4.0, 60.0), False),
        ("a", (4.0,), False),
        ("", (0.9, 0.9), False),
        ("b0", (0.9, 0.9), False),
    ],
)
def test_the_word_of_a_leader_counts_that_hears_a_majority(
    leader: str, heard_s: tuple[float, ...], *, counts: bool
) -> None:
    """Of one that is cut off nobody knows whether another was elected."""
    replicas = tuple(
        PeerInfo(name=f"b{number}", active=int(seconds * 1e9))
        for number, seconds in enumerate(heard_s)
    )
    info = StreamInfo({}, StreamState(), ClusterInfo(leader, replicas))
    assert info.is_leaders is counts
