"""What a relay stores for outsiders: which headers, and how it refuses."""

from __future__ import annotations

import json

import pytest

from contracts.topics import TOPICS
from runtime.bus.permissions import STORED
from runtime.bus.storing import choose_headers, make_refusal
from runtime.users import is_outside
from runtime.wire import OVERSIZED


def test_headers_that_our_clients_set_are_passed_on() -> None:
    ours = {
        "Content-Encoding": "zstd",
        "Nats-Msg-Id": "x",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "traceparent": "00-1-2-01",
        "ce-id": "7",
    }
    more = {"Nats-Request-Info": "{}", "Other": "x"}

    assert choose_headers(ours | more) == ours


@pytest.mark.parametrize(
    "name", ["Nats-Rollup", "Nats-TTL", "Nats-Schedule", "Nats-Batch-Id", OVERSIZED]
)
def test_other_headers_of_the_server_are_refused(name: str) -> None:
    assert choose_headers({name: "x"}) is None


def test_a_refusal_is_read_as_one_of_the_server() -> None:
    told = json.loads(make_refusal((429, 10167), "busy"))
    assert told["error"] == {"code": 429, "err_code": 10167, "description": "busy"}


def test_all_that_outsiders_send_is_stored() -> None:
    sent = {t.entity for t in TOPICS if any(map(is_outside, t.senders))}
    assert {entity for _, entity in STORED} == sent
