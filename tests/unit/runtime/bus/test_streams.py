"""What is written in the configuration of a stream, and what is compared."""

from __future__ import annotations

from contracts.streams import STREAMS, Stream
from runtime.bus.streams import configuration, differences


def test_all_streams_are_small_in_duplicates() -> None:
    """What the server would default to is written out."""
    for stream in STREAMS:
        config = configuration(stream, replicas=3)
        assert config["duplicate_window"] <= 120_000_000_000
        assert config["num_replicas"] == 3


def test_only_what_we_want_is_compared() -> None:
    """The server adds fields and leaves out empty ones."""
    wanted = configuration(Stream(name="S", subjects=("s.>",), max_bytes=9), 1)
    found = {k: v for k, v in wanted.items() if v} | {"metadata": {"_nats": "1"}}

    assert differences(wanted, found) == ()
    assert differences(wanted, found | {"max_age": 5}) == ("max_age",)
