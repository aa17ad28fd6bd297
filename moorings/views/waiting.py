"""What stands between a gang and its devices: since when, its place in line, holders.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from contracts.claim import ResourceClaimSpec
from contracts.gang import Gang
from contracts.lifecycle import GangRecord
from moorings.views.ages import read_clock
from moorings.views.inventory import KnownDevices, name_classes, view_devices
from moorings.views.lines import WaitingLines
from moorings.views.states import FREE, HELD, worst_state

_ENDS = ("AllocationRefused", "AllocationLost", "GangPending", "SubmitGang")
"""What is said of a gang that has no devices, or has none any more."""
Row = dict[str, Any]


def find_since(events: Iterable[Row]) -> str:
    """Return since when a gang has been without devices; empty: it has some."""
    since = ""
    for event in events:
        if event["what"] in _ENDS:
            since = since or event["at"]
        elif event["what"] in ("GangAllocated", "AllocationWritten", "GatesOpened"):
            since = ""
    return since


def view_wait(
    record: GangRecord, records: Iterable[GangRecord], known: KnownDevices | None
) -> Row:
    """Return a gang's place in line, and what it waits for; of others nothing."""
    contested: list[Row] = []
    if record.wants_decision and known is not None:
        contested = view_contested(record, known)
    queues = None if known is None else known.snapshot.queues
    lines = WaitingLines(records, queues, read_clock())
    place = lines.view(record.key)
    if place is not None:
        place["before"] = lines.list_before(record.key)
    return {"place": place, "contested": contested}


def find_priorities(known: KnownDevices) -> dict[str, int]:
    """Return the priorities of the gangs that have devices, by `namespace/name`."""
    return {
        f"{gang.namespace}/{gang.name}": gang.submission.gang.spec.priority
        for gang in known.snapshot.gangs.values()
        if gang.submission is not None and gang.placed is not None
    }


def view_contested(record: GangRecord, known: KnownDevices) -> list[Row]:
    """Return, by driver that a gang may want devices of, their states and holders.

    Holders come in the order in which it would help to end them: the least urgent
    first, then those with the most devices.
    """
    if record.submission is None:
        return []
    classes = _list_classes(record.submission.gang, known)
    drivers = [
        driver
        for driver, names in name_classes(known).items()
        if driver and classes & set(names)
    ]
    priorities = find_priorities(known)
    rows = view_devices(known) if drivers else []
    contested = []
    for driver in drivers:
        states: Counter[str] = Counter()
        held: Counter[str] = Counter()
        for row in rows:
            if row["driver"] == driver:
                states[worst_state(row["states"])] += 1
                held.update({holder["gang"] for holder in row["holders"]})
        holders: list[Row] = [
            {"gang": gang, "devices": count, "priority": priorities.get(gang, 0)}
            for gang, count in held.items()
        ]
        holders.sort(key=lambda h: (h["priority"], -h["devices"], h["gang"]))
        counts = {state: states[state] for state in (HELD, FREE, *sorted(states))}
        contested.append({"driver": driver, "states": counts, "holders": holders})
    return contested


def _list_classes(gang: Gang, known: KnownDevices) -> set[str]:
    """List the device classes that a gang asks for, as far as its claims are known."""
    return {
        name
        for member in gang.spec.members
        for claim in member.claims
        for spec in (
            claim.spec,
            _find_template(known, gang.metadata.namespace, claim.template_name),
        )
        if spec is not None
        for name in _list_requested(spec)
    }


def _find_template(
    known: KnownDevices, namespace: str, name: str | None
) -> ResourceClaimSpec | None:
    template = known.snapshot.templates.get(f"{namespace}/{name}")
    return None if template is None else template.spec.spec


def _list_requested(spec: ResourceClaimSpec) -> Iterator[str]:
    for request in spec.devices.requests:
        if request.exactly is not None:
            yield str(request.exactly.device_class_name)
        for alternative in request.first_available:
            yield str(alternative.device_class_name)
