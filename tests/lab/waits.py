"""Waiting for what Moorings says and does beside a real control plane."""

from __future__ import annotations

from collections.abc import Callable

from contracts.gang import GangPhase
from contracts.lifecycle import GangRecord
from contracts.names import GANG, REPORTER
from moorings.bus_client import Client
from tests.lab.cluster import name_of
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually


async def pods_of(
    site: Fleet,
    gang: str,
    count: int,
    holds: Callable[[Json], bool],
    within_s: float = 120.0,
) -> list[Json]:
    """Wait until something holds of so many pods of a gang; gives them by name."""
    chosen: list[Json] = []

    async def enough() -> bool:
        selected = {"labelSelector": f"{GANG}={gang}"}
        pods = await site.kube.list("v1", "Pod", site.namespace, **selected)
        chosen[:] = sorted(filter(holds, pods), key=name_of)
        return len(chosen) == count

    await eventually(enough, f"{count} pods of {gang}", within_s)
    return chosen


async def events_about(kube: Kube, about: Json) -> list[tuple[str, str]]:
    """List our events that an object leads to: reason and note, oldest first.

    A pod leads to what made it, to its Gang object and to the other pods of its gang,
    as docs/cluster.md says: what holds of a gang is told once.
    """
    meta = about["metadata"]
    namespace, gang = meta["namespace"], meta.get("labels", {}).get(GANG, "")
    owners = {item["uid"] for item in meta.get("ownerReferences", ())}
    events = await kube.list("events.k8s.io/v1", "Event", namespace)
    pods = await kube.list("v1", "Pod", namespace, labelSelector=f"{GANG}={gang}")
    uids = {meta["uid"], *owners}
    uids |= {pod["metadata"]["uid"] for pod in pods if gang}
    ours = [
        event
        for event in events
        if event.get("reportingController") == REPORTER
        and (
            event["regarding"]["uid"] in uids
            or (event["regarding"]["kind"], event["regarding"]["name"])
            == ("Gang", gang)
        )
    ]
    ours.sort(key=lambda event: str(event["eventTime"]))
    return [(event["reason"], event["note"]) for event in ours]


async def until_told(
    kube: Kube, about: Json, reason: str, within_s: float = 120.0
) -> str:
    """Wait for an event of ours about an object; gives its note."""
    notes: list[str] = []
    events: list[tuple[str, str]] = []

    async def told() -> bool:
        events[:] = await events_about(kube, about)
        notes[:] = [note for why, note in events if _bare(why) == _bare(reason)]
        return bool(notes)

    def missing() -> str:
        return f"event {reason} about {name_of(about)}, only {events}"

    await eventually(told, missing, within_s)
    return notes[-1]


async def priority_class(site: Fleet, value: int = 1000) -> str:
    """Add a PriorityClass, until admission knows it; gives its name."""
    name = f"{site.namespace}-{value}"
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    await site.publish({**kind, "metadata": {"name": name}, "value": value})
    probe = objects.pod(site.namespace, "probe", priorityClassName=name)

    async def is_known() -> bool:
        try:
            await site.kube.create(probe, dryRun="All")
        except RefusedError:
            return False
        return True

    await eventually(is_known, f"PriorityClass {name} is known")
    return name


def _bare(reason: str) -> str:
    """Give a reason as a Gang object says it; elsewhere it begins with `Gang`."""
    return reason.removeprefix("Gang")


async def until_phase(
    client: Client, site: Fleet, name: str, phase: GangPhase, within_s: float = 120.0
) -> GangRecord:
    """Wait for a phase of the newest gang of a name, as the bus has it."""
    records: list[GangRecord] = []

    async def there() -> bool:
        records[:] = await _gangs(client, site, name)
        return bool(records) and records[-1].phase is phase

    await eventually(there, f"gang {name} is {phase}", within_s)
    return records[-1]


async def until_priority(
    client: Client, site: Fleet, name: str, priority: int, within_s: float = 120.0
) -> None:
    """Wait until a gang that waits was asked for with a priority."""

    async def asked() -> bool:
        records = await _gangs(client, site, name)
        return any(
            record.wants_decision
            and record.is_answered
            and record.submission is not None
            and record.submission.gang.spec.priority == priority
            for record in records
        )

    await eventually(asked, f"gang {name} has priority {priority}", within_s)


async def until_over(
    client: Client, site: Fleet, name: str, within_s: float = 120.0
) -> list[GangRecord]:
    """Wait until all gangs of a name are over, and give them, oldest first."""
    records: list[GangRecord] = []

    async def over() -> bool:
        records[:] = await _gangs(client, site, name)
        return bool(records) and all(record.phase.is_terminal for record in records)

    await eventually(over, f"gang {name} is over", within_s)
    return records


async def _gangs(client: Client, site: Fleet, name: str) -> list[GangRecord]:
    key = (site.namespace, name)
    gangs = await client.fetch_gangs()
    return [record for record in gangs if (record.namespace, record.name) == key]
