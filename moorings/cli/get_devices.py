"""`get nodes` and `get devices`: read as the solver reads, then filtered."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contracts.labels import LabelSelector, does_match
from contracts.messages import ObjectObserved
from contracts.topics import (
    DRIFT,
    GANG_TOPICS,
    HEALTH,
    HEARTBEATS,
    INVENTORIES,
    STATE,
    Topic,
)
from moorings.cli.device_filter import DeviceFilter
from moorings.cli.known import Solvers, check_cluster, fetch_solvers, find_silence
from moorings.cli.listing import Listing
from moorings.errors import CannotReadError, UnknownNameError
from moorings.local.cluster import ClusterAccess, list_all, open_api
from moorings.views.ages import format_age
from moorings.views.fold import DevicesFold
from moorings.views.inventory import KnownDevices, view_devices, view_nodes
from publisher.slices.layout import is_our_name, read_outline

if TYPE_CHECKING:
    from moorings.bus_client import Client

NODE_COLUMNS = ("name", "status", "devices", "free", "held", "unusable", "pools")
DEVICE_COLUMNS = (
    "node",
    "driver",
    "pool",
    "name",
    "state",
    "health",
    "gang",
    "pod",
    "claim",
    "age",
)
WIDE_COLUMNS = ("share", "taints", "why", "healthSince", "healthMessage", "drift")
_WITHOUT = {
    "INV": "devices of node agents are not shown",
    "HEALTH": "unhealthy and drifted devices are not marked",
    "HB": "silent node agents are not marked",
    "STATE": "devices of other drivers, and who holds devices, are not shown",
}


async def list_nodes(
    client: Client,
    name: str | None,
    wanted: DeviceFilter,
    selector: LabelSelector,
    *,
    wide: bool,
) -> Listing:
    """List nodes: those of agents and of the cluster, and how many devices are held."""
    solvers = await fetch_solvers(client)
    known, notices = await fetch_devices(client, solvers)
    devices = view_devices(known)
    views = view_nodes(known, devices)
    there = {view["name"] for view in views}
    notices = _check_there(client, solvers, wanted.node, there) + notices
    if wanted:
        names = {row["node"] for row in devices if wanted.lets_through(row)}
        views = [view for view in views if view["name"] in names]
    views = [view for view in views if does_match(selector, view["labels"])]
    columns = (*NODE_COLUMNS, *(("drivers", "refused", "taints") if wide else ()))
    return _make_listing(views, "node", name, columns, notices)


async def list_devices(
    client: Client,
    name: str | None,
    wanted: DeviceFilter,
    *,
    wide: bool,
    access: ClusterAccess | None = None,
) -> Listing:
    """List devices: who holds them, which are free, and what is wrong with others.

    `access`: also those of drivers that Moorings decides nothing for, of that cluster.
    """
    solvers = await fetch_solvers(client)
    known, notices = await fetch_devices(client, solvers, access)
    devices = view_devices(known)
    nodes = {view["name"] for view in view_nodes(known, devices)}
    there = nodes | {row["node"] for row in devices}
    notices = _check_there(client, solvers, wanted.node, there) + notices
    views = [row for row in devices if wanted.lets_through(row)]
    columns = (*DEVICE_COLUMNS, *(WIDE_COLUMNS if wide else ()))
    return _make_listing(views, "device", name, columns, notices)


def _check_there(
    client: Client, solvers: Solvers | None, node: str, nodes: Collection[str]
) -> list[str]:
    """Refuse an unknown node or cluster; returns that no solver leads, if none does.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if not nodes:
        check_cluster(client, solvers)
    if node and node not in nodes:
        near = difflib.get_close_matches(node, sorted(nodes))
        raise UnknownNameError("node", node, near)
    silence = find_silence(client, solvers)
    return [silence] if silence else []


def _make_listing(
    views: list[dict[str, Any]],
    what: str,
    name: str | None,
    columns: Sequence[str],
    notices: Sequence[str],
) -> Listing:
    if name is not None:
        views = _find_views(views, what, name)
    return Listing(
        what=what,
        names=[list(_names_of(view))[-1] for view in views],
        views=views,
        columns=columns,
        rows=[[_to_cell(view, column) for column in columns] for view in views],
        nothing=f"no {what}s to show",
        notices=notices,
        is_one=name is not None,
    )


def _to_cell(view: Mapping[str, Any], column: str) -> str:
    """Write one cell; the holder of a device is in several."""
    match column:
        case "state":
            value: Any = view["states"]
        case "age":
            value = [_format_since(holder["since"]) for holder in view["holders"]]
        case "gang" | "claim" | "share":
            value = dict.fromkeys(holder[column] for holder in view["holders"])
        case "pod":
            value = [pod for holder in view["holders"] for pod in holder["pods"]]
        case "drift":
            value = dict.fromkeys(drift["kind"] for drift in view["drift"])
        case _:
            value = view[column]
    if not isinstance(value, (str, int)):
        value = ",".join(filter(None, value))
    return str(value) if value != "" else "<none>"


def _format_since(since: str) -> str:
    """Write how long ago a time was; empty if it is unknown."""
    if not since:
        return ""
    try:
        past = datetime.fromisoformat(since)
        return format_age((datetime.now(UTC) - past).total_seconds())
    except (TypeError, ValueError):
        return since


def _find_views(
    views: list[dict[str, Any]], what: str, name: str
) -> list[dict[str, Any]]:
    """Find what has this name, or `pool/name`, or `driver/pool/name`.

    Raises:
        UnknownNameError: nothing has.
    """
    matches = [view for view in views if name in _names_of(view)]
    if not matches:
        names = sorted({view["name"] for view in views})
        raise UnknownNameError(what, name, difflib.get_close_matches(name, names))
    return matches


def _names_of(view: Mapping[str, Any]) -> Iterable[str]:
    yield view["name"]
    if "pool" in view:
        yield f"{view['pool']}/{view['name']}"
        yield f"{view['driver']}/{view['pool']}/{view['name']}"


async def fetch_devices(
    client: Client, solvers: Solvers | None, access: ClusterAccess | None = None
) -> tuple[KnownDevices, list[str]]:
    """Fetch what the solver knows of devices, and what of it may not be read.

    What the solver that leads does not take, by its setting, is marked.
    With `access` also what it is not told of: slices of drivers that are not owned.

    Raises:
        CannotReadError: neither what agents announce nor what the cluster holds can.
    """
    reader = _SnapshotReader(client)
    if seen := (solvers or {}).get(client.cluster):
        reader.fold.limit_drivers(seen.claim.agent_drivers)
    errors = [
        error
        for topic in (INVENTORIES, HEALTH, STATE)
        if (error := await reader.read(topic)) is not None
    ]
    unread = {error.stream for error in errors}
    if {"INV", "STATE"} <= unread:
        raise errors[0]
    if access is not None:
        await reader.read_slices(access)
    if "HEALTH" not in unread and (error := await reader.read_drift()) is not None:
        errors.append(error)
    silence = await reader.listen()
    errors += filter(None, (silence,))
    notices = [f"{error}; {_WITHOUT[error.stream]}" for error in errors]
    for topic in GANG_TOPICS:
        if (error := await reader.read(topic)) is not None:
            raise error
    gangs = [g for g in reader.fold.snapshot.gangs.values() if g.placed is not None]
    for written in (await client.fetch_written(gangs)).values():
        reader.fold.note_written(written)
    return reader.fold.known(hears=silence is None), notices


class _SnapshotReader:
    """Reads what topics hold now."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.fold = DevicesFold()

    async def read(self, topic: Topic[Any]) -> CannotReadError | None:
        """Read all of a topic; returns why it cannot be read."""
        try:
            async for message, sequence in self._client.read(topic):
                with self._client.guard(topic, message):
                    self.fold.apply(message, sequence)
        except CannotReadError as error:
            return error
        return None

    async def listen(self) -> CannotReadError | None:
        """Read which node agents are heard; returns why it cannot be read."""
        try:
            async for message, _ in self._client.read(HEARTBEATS):
                self.fold.heard.add(message.node)
        except CannotReadError as error:
            return error
        return None

    async def read_drift(self) -> CannotReadError | None:
        """Read what runs otherwise than was decided; returns why it cannot be read."""
        try:
            async for message, _ in self._client.read(DRIFT):
                self.fold.note_drift(message)
        except CannotReadError as error:
            return error
        return None

    async def read_slices(self, access: ClusterAccess) -> None:
        """Read the slices that the bus has not: our own are there by their agents.

        Raises:
            KubernetesError: the API server does not say.
        """
        async with open_api(access) as api:
            kind = (await api.fetch_served_kinds()).resource_slice
            slices = await list_all(api, kind)
        for raw in slices:
            name = str(raw["metadata"]["name"])
            if is_our_name(name, read_outline(raw)):
                continue
            message = ObjectObserved(
                cluster=self._client.cluster, kind=kind.name, key=name, object=raw
            )
            with self._client.guard(STATE, message):
                self.fold.apply(message, 0)
