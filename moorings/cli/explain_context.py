"""What `explain` says beside a gang's reasons: time, line, holders, history, help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from contracts.asyncapi import messages_of
from contracts.lifecycle import GangRecord
from contracts.topics import DECISIONS
from moorings.cli.get_devices import fetch_devices
from moorings.cli.known import KnownGangs, fetch_solvers
from moorings.cli.output import notify, show_progress
from moorings.errors import CannotReadError, UnknownNameError
from moorings.views.events import view_event
from moorings.views.waiting import find_since, view_wait

if TYPE_CHECKING:
    from moorings.bus_client import Client

MOST_DECISIONS = 5
_DECISIONS = frozenset(kind.__name__ for kind in messages_of(DECISIONS))
Row = dict[str, Any]


async def add_context(
    client: Client,
    known: KnownGangs,
    records: Sequence[GangRecord],
    explanations: Iterable[Row],
) -> None:
    """Add to each explanation what is known beside the gang's own last decision."""
    by_uid = {record.uid: record for record in records}
    shown = [by_uid[e["uid"]] for e in explanations if e["uid"] in by_uid]
    histories = await _fetch_histories(client, shown)
    everybody = [record for story in known.stories for record in story.records]
    devices = None
    if any(record.wants_decision for record in shown):
        try:
            devices, notices = await fetch_devices(client, await fetch_solvers(client))
            known.unread += notices
        except CannotReadError as error:
            notify(f"{error}; who holds devices is not shown")
    for explanation in explanations:
        record = by_uid.get(explanation["uid"])
        if record is None:
            continue
        history = histories.get(record.uid, [])
        decisions = [event for event in history if event["what"] in _DECISIONS]
        waits = record.wants_decision
        explanation |= {
            "waitsSince": find_since(history) if waits else "",
            **view_wait(record, everybody, devices),
            "decisions": decisions[-MOST_DECISIONS:],
        }


async def _fetch_histories(
    client: Client, records: Sequence[GangRecord]
) -> Mapping[str, list[Row]]:
    """Fetch what was said of gangs, by uid, each in the order of time."""
    histories: dict[str, list[Row]] = {}
    for incoming in await client.fetch_events(records):
        if event := view_event(incoming):
            histories.setdefault(event["uid"], []).append(event)
    for history in histories.values():
        history.sort(key=lambda event: str(event["at"]))
    return histories


async def add_help(
    client: Client, records: Iterable[GangRecord], explanations: Iterable[Row]
) -> None:
    """Add to the explanation of each gang that waits which changes would let it in."""
    from moorings.console.helping import find_help  # noqa: PLC0415  # OR-Tools is slow to import

    by_uid = {record.uid: record for record in records}
    for explanation in explanations:
        record = by_uid.get(explanation["uid"])
        if record is None or not record.wants_decision:
            continue
        with show_progress("trying what would help"):
            try:
                explanation["help"] = await find_help(client, record)
            except UnknownNameError as error:
                notify(f"what would help is unknown: {error}")
