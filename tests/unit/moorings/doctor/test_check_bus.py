"""Versions, copies, settings, room and disk of NATS."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.streams import SETTINGS_VERSION, STREAMS
from moorings.doctor.check_bus import check_bus
from moorings.doctor.facts import LOCAL_STACK, ServerMonitor, Unread
from tests.builders.doctor import HEALTH, bus_facts, worst


def of_stream(name: str, **changes: Any) -> dict[str, Any]:
    """Make a bus in which one stream is different."""
    streams = {stream.name: HEALTH for stream in STREAMS}
    return {"streams": {**streams, name: structs.replace(HEALTH, **changes)}}


def of_all(**changes: Any) -> dict[str, Any]:
    health = structs.replace(HEALTH, **changes)
    return {"streams": {stream.name: health for stream in STREAMS}}


def monitor(**changes: Any) -> dict[str, Any]:
    fine = ServerMonitor(sync="always", max_payload=8 << 20, room_bytes=18 << 30)
    return {"monitor": structs.replace(fine, **changes)}


@pytest.mark.parametrize(
    ("changes", "check", "level", "words"),
    [
        ({"version": "2.11.4"}, "nats.version", "fail", "atomic"),
        ({"version": "2.12.0"}, "nats.version", "warn", "tested with"),
        ({"version": ""}, "nats.version", "warn", "no known version"),
        (of_all(replicas=1), "nats.replicas", "warn", "one server"),
        (of_stream("DEC", replicas=1), "nats.replicas", "warn", "DEC"),
        (of_stream("DEC", led=False), "nats.copies", "fail", "DEC"),
        (of_stream("DEC", lagging=("n2",)), "nats.copies", "warn", "DEC on n2"),
        (of_stream("DEC", different=("max_age",)), "nats.settings", "warn", "DEC (max"),
        (of_all(version=SETTINGS_VERSION - 1), "nats.settings", "warn", "version"),
        (of_stream("DEC", version=99), "nats.settings", "warn", "version 99"),
        (of_stream("DEC", share=0.7), "nats.room", "warn", "DEC 70%"),
        (of_stream("DEC", share=0.95), "nats.room", "fail", "DEC 95%"),
        (monitor(sync="120 s"), "nats.sync", "warn", "120 s"),
        (monitor(max_payload=1 << 20), "nats.payload", "fail", "1048576"),
        (monitor(room_bytes=10 << 30), "nats.disk", "fail", "10.0 GiB"),
        (monitor(failure="1.blk: no space left"), "nats.health", "fail", "disk full"),
        (monitor(failure="JetStream not enabled"), "nats.health", "fail", "not en"),
    ],
)
def test_what_is_wrong_is_named(
    changes: dict[str, Any], check: str, level: str, words: str
) -> None:
    lines = worst(check_bus(bus_facts(**changes)))
    assert list(lines) == [check]
    assert lines[check].level == level
    assert words in lines[check].why


def test_records_may_fill_their_room() -> None:
    """They give up their oldest."""
    assert worst(check_bus(bus_facts(**of_stream("BLOB", share=1.0)))) == {}


def test_streams_that_cannot_be_looked_at_are_named_by_reason() -> None:
    streams = {
        "DEC": Unread("there is no such stream", "start a solver"),
        "BLOB": Unread("not allowed"),
        "CMD": HEALTH,
    }
    lines = [
        line
        for line in check_bus(bus_facts(streams=streams))
        if line.check == "nats.streams"
    ]
    assert [(line.level, line.why) for line in lines] == [
        ("fail", "DEC: there is no such stream"),
        ("warn", "unknown: BLOB: not allowed"),
    ]


def test_nothing_is_advised_that_the_local_stack_cannot_have() -> None:
    """Neither further servers, nor a monitoring port."""
    one = of_all(replicas=1)["streams"]
    unasked = {"streams": one, "monitor": Unread("nobody gave its address")}
    elsewhere = worst(check_bus(bus_facts(**unasked)))
    assert list(elsewhere) == ["nats.replicas", "nats.sync"]
    here = worst(check_bus(bus_facts(server=LOCAL_STACK, **unasked)))
    assert list(here) == ["nats.sync"]
