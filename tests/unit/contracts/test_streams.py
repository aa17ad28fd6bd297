"""Every stream is bounded, and all of them fit on the servers that we set up."""

from __future__ import annotations

import re

from contracts.streams import STREAMS
from tests.lab.manifests import BASE

CONF = (BASE / "nats" / "nats.conf").read_text()


def _limit(name: str) -> int:
    (number, unit), *_ = re.findall(rf"{name}: (\d+)(GB|MB)\n", CONF)
    return int(number) << {"GB": 30, "MB": 20}[unit]


def test_all_streams_together_fit_on_a_server() -> None:
    """The server sets the room apart, so none takes another's; a tenth stays free."""
    for storage, name in (("file", "max_file"), ("memory", "max_mem")):
        sizes = [s.max_bytes for s in STREAMS if s.storage == storage]
        assert all(size > 0 for size in sizes)
        assert sum(sizes) <= _limit(name) * 0.9


def test_only_what_nothing_follows_from_is_dropped_for_room() -> None:
    """Submissions, commands, decisions, confirmations and state are refused instead."""
    disposable = {stream.name for stream in STREAMS if stream.disposable}
    assert disposable == {"HB", "REPORT", "LEADS", "AVOID", "SOLVE", "BLOB"}
