"""Gangs as rows that change, and one gang's story: its time line, why, and what helps.

Rows are those of `moorings get`, stories those of `moorings explain`. Pure, but for the
clock by which those tell ages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from moorings.stories import GangStory, HeldObjects, WrittenGangs, name_story
from moorings.views.events import list_members
from moorings.views.gangs import explain_story, is_recent, view_story

MOST_OVER = 500
"""Gangs that are over of which rows are shown: the last ones."""
_OF_ROWS = ("namespace", "name", "uid", "phase", "priority", "pods", "nodes", "reason")
Row = dict[str, Any]


class _Shown(Struct, frozen=True):
    """The row of a gang, and what it is made of."""

    row: Row
    lives: bool
    said: tuple[object, ...]
    pods: int


class GangRows:
    """The rows of gangs; a row is made again when its gang has a new message."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        """By name: of each gang that lives, and of the last that are over."""
        self._shown: dict[str, _Shown] = {}

    def update(
        self, stories: Iterable[GangStory], held: HeldObjects
    ) -> dict[str, Row | None]:
        """Follow what is known now; returns the rows that changed, None: gone."""
        shown: dict[str, _Shown] = {}
        rows: dict[str, Row] = {}
        over: list[tuple[int, str]] = []
        for story in stories:
            name = name_story(story)
            shown[name] = entry = self._show_story(name, story, held)
            if entry.lives or is_recent(story):
                rows[name] = entry.row
            else:
                over.append((story.records[-1].submission_sequence, name))
        rows |= {name: shown[name].row for _, name in sorted(over)[-MOST_OVER:]}
        before, self.rows, self._shown = self.rows, rows, shown
        changed = {
            name: row
            for name, row in rows.items()
            if (old := before.get(name)) is not row and old != row
        }
        return dict.fromkeys(before.keys() - rows.keys()) | changed

    def _show_story(self, name: str, story: GangStory, held: HeldObjects) -> _Shown:
        """Return what was shown of a gang, unless something is otherwise."""
        said = (*story.records, *story.reports)
        pods = sum(held.count_pods(record) for record in story.records)
        known = self._shown.get(name)
        if (
            known is not None
            and known.pods == pods
            and len(known.said) == len(said)
            and all(a is b for a, b in zip(known.said, said, strict=True))
        ):
            return known
        lives = bool(story.living or story.reports)
        return _Shown(_view_row(story, held), lives, said, pods)


def _view_row(story: GangStory, held: HeldObjects | None) -> Row:
    view = view_story(story, held)
    shown = {key: view[key] for key in _OF_ROWS}
    return {"id": name_story(story), **shown, "since": view["since"]}


def tell_story(
    story: GangStory,
    events: Iterable[Row],
    written: WrittenGangs,
    held: HeldObjects | None,
) -> Row:
    """Tell all that is known of a gang: where it is, why, what came before."""
    return {
        **_view_row(story, held),
        "asks": [list_members(r.submission) for r in story.records[-1:]],
        "explanations": explain_story(story, written, held),
        "events": sorted(events, key=lambda event: str(event["at"])),
    }
