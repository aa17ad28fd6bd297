"""What is asked of a stream's leader is answered by nobody else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from runtime.bus.jetstream import JetStreamError, read_server_time


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
