"""What a relay stores for outsiders: which headers, and how it refuses."""

from __future__ import annotations

import pytest

from contracts.topics import SUBMISSIONS, TOPICS
from runtime.bus.permissions import STORED
from runtime.bus.storing import choose_headers, is_of_names
from runtime.users import is_outside
from runtime.wire import OVERSIZED


def test_headers_that_our_clients_set_are_passed_on() -> None:
    ours = {
        "Content-Encoding": "zstd",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "traceparent": "00-1-2-01",
        "ce-id": "7",
    }
    more = {"Nats-Msg-Id": "x", "Other": "x"}

    assert choose_headers(ours | more) == ours


@pytest.mark.parametrize(
    "name", ["Nats-Rollup", "Nats-TTL", "Nats-Schedule", "Nats-Batch-Id", OVERSIZED]
)
def test_other_headers_of_the_server_are_refused(name: str) -> None:
    assert choose_headers({name: "x"}) is None


def test_subjects_have_escaped_names() -> None:
    assert is_of_names(SUBMISSIONS.subject("local", "a.b/c é", "1"))
    for odd in ("x\x0cy", "é", "*", ">", "", "$G", "a,b", "x\n"):
        assert not is_of_names(f"submit.v1.local.team.{odd}")


def test_all_that_outsiders_send_is_stored() -> None:
    sent = {t.entity for t in TOPICS if any(map(is_outside, t.senders))}
    assert {entity for _, entity in STORED} == sent
