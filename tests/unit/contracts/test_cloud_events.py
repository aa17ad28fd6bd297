"""What is said of gangs, with the attributes of CloudEvents."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator

from contracts.cloud_events import describe_headers, make_attributes
from contracts.topics import DECISIONS, INVENTORIES, SUBMISSIONS

TIME = "2026-11-20T12:00:00+00:00"


def test_a_decision_is_an_event_of_its_gang() -> None:
    subject = DECISIONS.subject("local", "team-a", "uid-1")
    headers = make_attributes(subject, b"{}", "GangAllocated", TIME)
    assert headers.pop("ce-id")
    assert headers == {
        "ce-specversion": "1.0",
        "ce-source": "/moorings/local",
        "ce-type": "dev.moorings.v1.GangAllocated",
        "ce-subject": "team-a/uid-1",
        "ce-time": TIME,
        "ce-datacontenttype": "application/json",
    }


def test_the_same_again_is_the_same_event_and_anything_else_another() -> None:
    one, other = (SUBMISSIONS.subject("c", "n", uid) for uid in ("a", "b"))
    ids = [
        make_attributes(subject, data, "SubmitGang", TIME)["ce-id"]
        for subject, data in ((one, b"x"), (one, b"x"), (one, b"y"), (other, b"x"))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("name", ['a "b"', "50%", "d\u00e9j\u00e0", "\U0001f604"])
def test_names_are_encoded_as_headers_can_hold_them(name: str) -> None:
    """Printable ASCII without space, `"` and `%`; decoded once it is back."""
    subject = DECISIONS.subject("local", name, "uid")
    value = make_attributes(subject, b"", "GangPending", TIME)["ce-subject"]
    assert value.isascii()
    assert not set(' "') & set(value)
    assert unquote(value) == f"{name}/uid"


def test_what_is_not_said_of_a_gang_is_no_event() -> None:
    subject = INVENTORIES.subject("local", "node")
    assert make_attributes(subject, b"", "DevicesAnnounced", TIME) == {}
    bare = DECISIONS.subject("local", "n", "u")
    assert make_attributes(bare, b"", "", TIME) == {}


def test_the_schema_takes_what_is_sent_and_nothing_at_all() -> None:
    """Whoever has them switched off sends none."""
    schema = Draft202012Validator(describe_headers())
    subject = DECISIONS.subject("local", "team-a", "uid-1")
    headers = make_attributes(subject, b"{}", "GangAllocated", TIME)
    schema.validate(headers)
    schema.validate({})
    assert headers.keys() == describe_headers()["properties"].keys()
    assert not schema.is_valid({"ce-type": "other"})
