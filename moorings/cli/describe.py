"""`moorings describe`: one thing in full, by the words that kubectl's users type."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import typer

from contracts.codec import to_builtins
from contracts.labels import LabelSelector
from moorings.cli.completing import complete_explained
from moorings.cli.connecting import Connecting
from moorings.cli.device_filter import DeviceFilter
from moorings.cli.exit_codes import ExitCode
from moorings.cli.explain import explain_one
from moorings.cli.get import parse_target
from moorings.cli.listing import Listing
from moorings.cli.options import Cluster, Namespace, Output, Server, StateDir
from moorings.cli.output import Format, notify, say, show, show_table
from moorings.cli.views import NONE
from moorings.errors import UsageError

_INDENT = 2


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(describe)


def describe(
    what: Annotated[
        str,
        typer.Argument(
            help="A gang by name, or a kind: gang, pod, queue, node, device or solve; "
            "also KIND/NAME.",
            autocompletion=complete_explained,
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None, typer.Argument(help="Its name.", show_default=False)
    ] = None,
    namespace: Namespace = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Show a gang, pod, queue, node, device or solve in full.

    Of a gang or a pod it is `moorings explain`.

    moorings describe node gpu-0
    """
    kind, name = parse_target(what, name, "describe")
    if name is None:
        raise UsageError(f"describe: which of the {kind}? `moorings get {kind}` lists")
    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    match kind:
        case "gangs" | "pods":
            target = f"pod/{name}" if kind == "pods" else name
            explain_one(target, namespace, bus, output)
        case "solves":
            from moorings.cli.recorded_solves import show_solve  # noqa: PLC0415  # slow to import

            show_solve(name, "", bus, output)
        case _:
            _describe(kind, name, bus, output)


def _describe(kind: str, name: str, bus: Connecting, output: Format) -> NoReturn:
    """Describe the queue, nodes or devices of a name, and end the command."""
    from moorings.cli.get_devices import (  # noqa: PLC0415  # slow to import
        DEVICE_COLUMNS,
        list_devices,
        list_nodes,
    )

    async def fetch() -> tuple[Listing, list[Listing]]:
        async with bus.connect() as client:
            if kind == "queues":
                from moorings.cli.get_queues import list_queues  # noqa: PLC0415  # slow to import

                return await list_queues(client, name, wide=True), []
            everything = DeviceFilter()
            if kind == "devices":
                return await list_devices(client, name, everything, wide=True), []
            nodes = await list_nodes(
                client, name, everything, LabelSelector(), wide=True
            )
            of_node = DeviceFilter(node=name)
            return nodes, [await list_devices(client, None, of_node, wide=False)]

    listing, devices = asyncio.run(fetch())
    for notice in dict.fromkeys(listing.notices):
        notify(notice)
    views = [
        {key: to_builtins(value) for key, value in view.items()}
        for view in listing.views
    ]
    for view, of_it in zip(views, devices, strict=False):
        view["devices"] = [to_builtins(each) for each in of_it.views]
    if output is not Format.TABLE:
        show(views if len(views) > 1 else views[0], output, (), ())
        raise typer.Exit(ExitCode.YES)
    for number, view in enumerate(views):
        if number:
            say("")
        print_fields({k: v for k, v in view.items() if k != "devices" or not devices})
    for of_it in devices:
        say("")
        show_table(DEVICE_COLUMNS, of_it.rows, of_it.nothing)
    raise typer.Exit(ExitCode.YES)


def print_fields(
    view: Mapping[str, Any], indent: int = 0, *, ours: bool = True
) -> None:
    """Print a line for each field, and those of what is in it further in.

    `ours`: the names of its fields are ours, and are written as titles.
    """
    titles = [f"{_to_title(key) if ours else key}:" for key in view]
    width = max(map(len, titles), default=0) + 1
    for title, value in zip(titles, view.values(), strict=True):
        inner = value if isinstance(value, list) else [value]
        head = f"{' ' * indent}{title}"
        match inner:
            case [{}, *_] if not _is_plain(value):
                say(head)
                for each in inner:
                    print_fields(each, indent + _INDENT, ours=inner is value)
            case _:
                say(f"{head:<{width + indent}}{_to_text(value)}".rstrip())


def _is_plain(value: Any) -> bool:
    """True if it has one text or number in it at most, as an attribute has."""
    match value:
        case {**inner}:
            return len(inner) <= 1 and not any(
                isinstance(each, dict | list) for each in inner.values()
            )
        case _:
            return False


def _to_title(key: str) -> str:
    """Return `Health message` of `healthMessage`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in key)
    return words[:1].upper() + words[1:]


def _to_text(value: Any) -> str:
    match value:
        case {**inner}:
            value = next(iter(inner.values()), "")
        case list():
            value = ", ".join(map(str, value))
        case _:
            pass
    return str(value) if value not in ("", None) else NONE
