"""Gangs as rows, and the events of one's time line."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.messages import GatesOpened
from moorings.console.gangs import (
    MOST_OVER,
    GangRows,
    tell_story,
)
from moorings.stories import GangStory, HeldObjects, collect_stories, name_story
from tests import builders
from tests.builders.decisions import (
    gang_allocated,
    gang_pending,
    gang_released,
    submission,
)
from tests.builders.plans import record_of

REASON = Reason(rule=Rule.TAKEN, message="others have them", facts={"free": 1})
WAITS = replace(gang_pending(), reasons=(REASON,))


def story_of(*messages: Any) -> GangStory:
    (story,) = collect_stories([record_of(*messages)], [])
    return story


def rows_of(stories: list[GangStory]) -> dict[str, Any]:
    return GangRows().update(stories, HeldObjects())


def test_a_row_is_told_again_only_where_something_changed() -> None:
    rows = GangRows()
    submitted = record_of(submission())
    (name,) = rows.update(collect_stories([submitted], []), HeldObjects())
    assert rows.update(collect_stories([submitted], []), HeldObjects()) == {}
    waits = submitted.apply(WAITS, 1)
    changed = rows.update(collect_stories([waits], []), HeldObjects())
    assert changed == {name: rows.rows[name]}
    assert rows.update([], HeldObjects()) == {name: None}


def test_a_row_counts_the_pods_that_are_there() -> None:
    decision = gang_allocated(pods=2)
    gates = GatesOpened(
        cluster=decision.cluster,
        namespace=decision.namespace,
        uid=decision.uid,
        attempt=1,
        state=1,
    )
    stories = [story_of(submission(), decision, gates)]
    rows = GangRows()
    pods = {f"{decision.namespace}/p{index}": decision.uid for index in range(2)}
    ((name, row),) = rows.update(stories, HeldObjects(pods=pods)).items()
    assert row is not None
    assert row["pods"] == 2
    pods.popitem()
    changed = rows.update(stories, HeldObjects(pods=pods))[name]
    assert changed is not None
    assert changed["pods"] == 1


def test_a_row_has_the_reason_and_since_when() -> None:
    submitted = replace(submission(), submitted_at="2026-11-20T12:00:00Z")
    story = story_of(submitted, WAITS)
    row = rows_of([story])[name_story(story)]
    assert row["phase"] == "Pending"
    assert row["reason"].startswith("DevicesTaken")
    assert row["since"] == "2026-11-20T12:00:00Z"


def test_submissions_of_one_name_are_told_apart() -> None:
    records = [
        record_of(submission(builders.gang(uid=uid), uid=uid)) for uid in ("u1", "u2")
    ]
    stories = collect_stories(records, [])
    assert len(rows_of(stories)) == 2


def test_of_gangs_that_are_over_the_last_are_shown() -> None:
    records = []
    for number in range(MOST_OVER + 5):
        uid = f"u{number:04}"
        submitted = submission(builders.gang(uid=uid), uid=uid)
        record = record_of(submitted, gang_released(uid))
        records.append(replace(record, submission_sequence=number + 1))
    rows = rows_of(collect_stories(records, []))
    assert len(rows) == MOST_OVER
    assert "u0000" not in rows
    assert f"u{MOST_OVER + 4:04}" in rows


def test_a_story_says_why_and_what_is_asked() -> None:
    told = tell_story(story_of(submission(), WAITS), [], {}, None)
    (reason,) = told["explanations"][0]["reasons"]
    assert reason["rule"] == Rule.TAKEN
    ((asks,),) = told["asks"]
    assert asks.startswith("1 of worker: 1 ")


def test_events_are_in_the_order_of_time() -> None:
    events = [{"at": "2"}, {"at": "1"}]
    told = tell_story(story_of(submission(), gang_allocated()), events, {}, None)
    assert [event["at"] for event in told["events"]] == ["1", "2"]
