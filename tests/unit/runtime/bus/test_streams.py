"""What is written in the configuration of a stream, and what is compared."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from contracts.streams import SETTINGS_VERSION, STREAMS, Stream
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


def test_other_settings_are_of_another_version() -> None:
    """Else two versions beside each other change a stream back and forth."""
    settings = [configuration(stream, replicas=1) for stream in STREAMS]
    for config in settings:
        del config["metadata"]
    digest = sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()

    assert (SETTINGS_VERSION, digest[:16]) == (7, "6dd9248986de1d38")
