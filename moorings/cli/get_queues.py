"""`get queues`, and the places of gangs in them: read as the solver reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from contracts.lifecycle import GangRecord
from contracts.topics import STATE
from moorings.cli.get import CLUSTER_QUEUE
from moorings.cli.known import fetch_solvers, find_silence
from moorings.cli.listing import Listing, find_views
from moorings.cli.views import NONE
from moorings.errors import CannotReadError
from moorings.views.ages import format_age, measure_age, read_clock
from moorings.views.lines import WaitingLines
from moorings.views.queues import QUEUE_KINDS, view_queues, with_gangs
from solver.snapshot.snapshot import Snapshot, apply

if TYPE_CHECKING:
    from moorings.bus_client import Client

COLUMNS = (
    "name",
    "cohort",
    "strategy",
    "stop",
    "running",
    "waiting",
    "oldest",
    "quota",
)
WIDE_COLUMNS = ("aging", "patience")
_IN_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


async def list_queues(client: Client, name: str | None, *, wide: bool) -> Listing:
    """List ClusterQueues: their quotas, who runs by them, and who waits.

    Raises:
        CannotReadError: gangs or queues cannot be read.
    """
    silence = find_silence(client, await fetch_solvers(client))
    gangs = await client.fetch_gangs()
    views = view_queues(with_gangs(await fetch_queues(client), gangs))
    if name is not None:
        views = find_views(views, "ClusterQueue", name)
    return Listing(
        what=CLUSTER_QUEUE,
        names=[view["name"] for view in views],
        views=views,
        columns=(*COLUMNS, *(WIDE_COLUMNS if wide else ())),
        rows=[_to_row(view, wide=wide) for view in views],
        nothing="no ClusterQueues: no quota limits anybody",
        below=[line for view in views for line in _list_warnings(view)],
        notices=[silence] if silence else [],
        is_one=name is not None,
    )


async def fetch_queues(client: Client) -> Snapshot:
    """Fetch the queues of the cluster; nothing else is known of it then.

    Raises:
        CannotReadError: they cannot be read.
    """
    snapshot = Snapshot()
    for message in await client.fetch_objects(*QUEUE_KINDS):
        with client.guard(STATE, message):
            snapshot = apply(snapshot, message)
    return snapshot


async def fetch_places(
    client: Client, records: Iterable[GangRecord], notices: list[str]
) -> WaitingLines:
    """Fetch the lines in which gangs wait; a notice says if queues are unknown."""
    try:
        queues = (await fetch_queues(client)).queues
    except CannotReadError as error:
        notices.append(f"{error}; places in queues are not shown")
        return WaitingLines(())
    return WaitingLines(records, queues, read_clock())


def _list_warnings(view: Mapping[str, Any]) -> list[str]:
    closed = [f"{view['name']} lets nobody in: {view['closed']}"]
    unread = [f"{view['name']}: {each}" for each in view["unread"]]
    return [*(closed if view["closed"] else []), *unread]


def _to_row(view: Mapping[str, Any], *, wide: bool) -> list[str]:
    since = view["oldestSince"]
    quotas = [_describe_quota(each, wide=wide) for each in view["quotas"]]
    cells = (
        view["name"],
        view["cohort"] or NONE,
        view["strategy"],
        view["stopPolicy"],
        view["running"],
        view["waiting"],
        format_age(measure_age(since)) if since else NONE,
        ", ".join(quotas) or NONE,
    )
    terms = [view[column] or NONE for column in WIDE_COLUMNS] if wide else []
    return [*map(str, cells), *terms]


def _describe_quota(quota: Mapping[str, str], *, wide: bool) -> str:
    """Write a quota: `gpu.example.com 100/96 of any (4 borrowed)`."""
    resource = quota["resource"]
    used, nominal, borrowed, left = (
        shorten(resource, quota[what])
        for what in ("used", "nominal", "borrowed", "left")
    )
    more = [f"{borrowed} borrowed"] if borrowed != "0" else []
    more += [f"{left} left"] if wide else []
    suffix = f" ({', '.join(more)})" if more else ""
    return f"{resource} {used}/{nominal} of {quota['flavor']}{suffix}"


def shorten(resource: str, amount: str) -> str:
    """Write bytes as `1.5Ti`; other amounts stay as they are."""
    if not resource.startswith(_IN_BYTES) or not amount.isdigit():
        return amount
    value, suffixes = float(amount), iter(_SUFFIXES)
    suffix = next(suffixes)
    while value >= 1024 and (larger := next(suffixes, "")):
        value, suffix = value / 1024, larger
    return f"{value:.4g}{suffix}"
