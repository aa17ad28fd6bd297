"""What `moorings explain` says of pods."""

from __future__ import annotations

import pytest

from contracts.ids import GangUID
from contracts.reports import WAITING, PodsReport
from moorings.cli.explain import find_bypassed
from moorings.cli.known import KnownGangs, unknown_gang
from moorings.errors import BypassedError
from moorings.stories import GangQuery, GangStory, HeldObjects
from tests.builders.decisions import gang_released, submission
from tests.builders.plans import record_of

NONE, TRAIN = GangUID(""), GangUID("uid-train")
WAITS = PodsReport(phase=WAITING, reason="PodsMissing", pods=1, names=("x",))


@pytest.mark.parametrize(
    ("pods", "namespace", "found"),
    [
        ({"a/x": NONE}, None, "a/x"),
        ({"a/x": NONE}, "a", "a/x"),
        ({"a/x": NONE}, "b", ""),
        ({"a/x": TRAIN}, None, ""),
        ({"a/x": NONE, "b/x": TRAIN}, None, ""),
        ({"a/x": NONE, "b/x": TRAIN}, "a", "a/x"),
        ({"a/xx": NONE}, None, ""),
    ],
)
def test_a_pod_on_a_node_that_no_gang_has_was_not_asked_for(
    pods: dict[str, GangUID], namespace: str | None, found: str
) -> None:
    """Such as one that was created with spec.nodeName."""
    known = KnownGangs(stories=[], held=HeldObjects(pods=pods), unread=[])
    assert find_bypassed(known, "x", namespace) == found


def test_who_waits_or_may_not_be_seen_is_not_bypassed() -> None:
    held = HeldObjects(pods={"a/x": NONE})
    story = GangStory(namespace="b", name="x", is_lone=True, reports=(WAITS,))
    waiting = KnownGangs(stories=[story], held=held, unread=[])
    assert find_bypassed(waiting, "x", None) == ""
    assert find_bypassed(waiting, "x", "a") == "a/x"
    assert find_bypassed(KnownGangs(stories=[], held=None, unread=[]), "x", None) == ""


def test_a_pod_that_was_asked_for_where_it_is_was_not_bypassed() -> None:
    """By policy; its gang says what became of it while it lives."""
    held = HeldObjects(pods={"a/x": NONE})
    alive, over = record_of(submission()), record_of(submission(), gang_released())
    for record, found in ((alive, ""), (over, "a/x")):
        story = GangStory(namespace="a", name="x", is_lone=True, records=(record,))
        known = KnownGangs(stories=[story], held=held, unread=[])
        assert find_bypassed(known, "x", None) == found


def test_the_error_names_what_to_do_instead() -> None:
    said = str(BypassedError("a/x"))
    assert "spec.nodeName" in said
    assert "nodeSelector: {kubernetes.io/hostname: NODE}" in said
    assert "moorings.dev/allocation" in said


def test_who_names_a_namespace_is_told_of_it() -> None:
    """The gang may be in another one."""
    story = GangStory(namespace="b", name="x", is_lone=True)
    error = unknown_gang(GangQuery.of("a/x"), [story])
    assert str(error).startswith("no gang named 'a/x'; ")
    assert str(error).endswith("did you mean b/x?")
