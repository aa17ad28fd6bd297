"""One message that cannot be handled ends nothing, and can be found in the log."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from contracts.announcing import Refusal
from contracts.errors import DecodeError
from contracts.messages import MAX_REASON
from runtime.errors import BusUnavailableError, MessageError, RestartError
from runtime.refusals import Refusals
from runtime.wire import Received, Refused

CAME = Received(subject="inv.v1.east.n", data=b"", sequence=7, time_s=0.0)


def refuse(refusals: Refusals, error: Exception, source: Received | str = CAME) -> None:
    """Handle a message that ends in this error."""
    with refusals.guard(source):
        raise error


@pytest.mark.parametrize(
    ("error", "field", "reason"),
    [
        (DecodeError("inventory", "$.pools", "no array"), "$.pools", "no array"),
        (MessageError("inv.v1.east.n", "does not unpack"), "", "does not unpack"),
        (KeyError("rack"), "", "KeyError: 'rack'"),
        (RecursionError("too deep"), "", "too deep"),
        (MemoryError(), "", "MemoryError"),
    ],
)
def test_whatever_a_handler_raises_is_a_refusal(
    error: Exception, field: str, reason: str
) -> None:
    """With the message, the field and the reason; the next one is handled."""
    refusals = Refusals()
    with refusals.guard(CAME) as guarded:
        raise error
    assert guarded.refused is not None
    assert (guarded.refused.subject, guarded.refused.sequence) == (CAME.subject, 7)
    assert guarded.refused.field == field
    assert reason in guarded.refused.reason
    with refusals.guard(CAME) as guarded:
        pass
    assert guarded.refused is None
    assert refusals.counts == {"inv": 1}


def test_what_is_left_out_of_a_message_is_noted_part_by_part() -> None:
    """In the one form, cut to what a log line may have."""
    refusals = Refusals()
    with capture_logs() as logs:
        refusals.note_parts(CAME, [Refusal("$.a", "no"), Refusal("$.b", "x" * 9_999)])
    assert [(line["field"], line["reason"][:2]) for line in logs] == [
        ("$.a", "no"),
        ("$.b", "xx"),
    ]
    assert all(line["subject"] == CAME.subject for line in logs)
    assert len(logs[1]["reason"]) == MAX_REASON
    assert refusals.counts == {"inv": 2}


@pytest.mark.parametrize(
    "error",
    [BusUnavailableError("publish", "away"), RestartError("lost"), KeyboardInterrupt()],
)
def test_what_concerns_the_service_goes_on(error: BaseException) -> None:
    """The bus is away, or the process is to end: no message is to blame."""
    refusals = Refusals()
    with pytest.raises(type(error)), refusals.guard(CAME):
        raise error
    assert not refusals.counts


def test_refusals_are_counted_by_what_they_are_of_and_logged_in_one_form() -> None:
    """Objects of Kubernetes are named as they are."""
    refusals = Refusals()
    with capture_logs() as logged:
        refuse(refusals, DecodeError("inventory", "$.pools", "no array"))
        refuse(refusals, DecodeError("pod", "$", "no object"), source="Pod/ns/a")
        refusals.note(Refused(subject=CAME.subject, reason="another", sequence=8))
    assert refusals.counts == {"inv": 2, "Pod": 1}
    assert [line["event"] for line in logged] == ["message.refused"] * 3
    assert [line["subject"] for line in logged] == [
        "inv.v1.east.n",
        "Pod/ns/a",
        "inv.v1.east.n",
    ]
    assert [line["count"] for line in logged] == [1, 1, 2]
    assert logged[0]["field"] == "$.pools"


def test_a_mistake_of_ours_is_shown_once_where_it_is_made() -> None:
    """Every message that meets it is named; another mistake is shown as well."""
    refusals = Refusals()
    with capture_logs() as logged:
        for _ in range(3):
            refuse(refusals, ZeroDivisionError("ours"))
        with refusals.guard(CAME):
            raise ZeroDivisionError("elsewhere")
    assert [line["event"] for line in logged].count("message.refused") == 4
    shown = [line for line in logged if line["event"] == "message.failed"]
    assert [line["log_level"] for line in shown] == ["error", "error"]
    assert [str(line["exc_info"]) for line in shown] == ["ours", "elsewhere"]


def test_what_is_said_of_a_refusal_is_short() -> None:
    """Whatever its author wrote, and even if it cannot be written."""
    refusals = Refusals()
    with refusals.guard(CAME) as guarded:
        raise DecodeError("inventory", "$." + "f" * 5000, "r" * 5000)
    assert guarded.refused is not None
    assert len(guarded.refused.reason) + len(guarded.refused.field) <= 1000
    with refusals.guard(CAME) as guarded:
        raise KeyError(10**5000)
    assert guarded.refused is not None
    assert "KeyError" in guarded.refused.reason
