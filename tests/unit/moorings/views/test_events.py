"""What was said of a gang is an event: when, what, and by which solve."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.topics import COMMANDS, DECISIONS, SUBMISSIONS, Topic
from moorings.views.events import view_event
from runtime.wire import Incoming
from tests.builders.decisions import gang_pending, submission

REASON = Reason(rule=Rule.TAKEN, message="others have them", facts={"free": 1})
WAITS = replace(gang_pending(), reasons=(REASON,))


def incoming(topic: Topic[Any], message: Any) -> Incoming[Any]:
    names = () if message is None else message.address
    return Incoming(
        topic=topic, names=names, message=message, data=b"", sequence=1, time_s=86_400.5
    )


def test_an_event_says_when_the_server_stored_it() -> None:
    event = view_event(incoming(DECISIONS, WAITS))
    assert event is not None
    assert event["at"] == "1970-01-02T00:00:00.500+00:00"
    assert (event["what"], event["solve"]) == ("GangPending", "solve-2")
    assert event["reasons"] == [str(REASON)]


def test_a_submission_says_what_it_asks_for() -> None:
    event = view_event(incoming(SUBMISSIONS, submission()))
    assert event is not None
    assert "worker" in event["detail"]


def test_a_subject_that_ended_is_no_event() -> None:
    assert view_event(incoming(COMMANDS, None)) is None
