"""Shell completion for ids of recorded solves and exported files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from moorings.cli.completing import complete_words, is_plain

if TYPE_CHECKING:
    from moorings.bus_client import Client

EXPORTED = ".moorings"


def complete_solves(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the id of a recorded solve, the last one first."""

    async def ask(client: Client) -> list[str]:
        from moorings.recorded import list_solves  # noqa: PLC0415  # slow to import

        entries = await list_solves(client)
        return [entry.opened.solve[:16] for entry in reversed(entries)]

    return complete_words(ctx, incomplete, ask)


def complete_replayed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete what `replay` takes: an exported file, or the id of a solve."""
    return [*list_exported(incomplete), *complete_solves(ctx, incomplete)]


def list_exported(incomplete: str) -> list[str]:
    """List the exported solves, and the folders, whose paths begin so.

    Names that must be quoted are left to the shell, which does so.
    """
    head, slash, _ = incomplete.rpartition("/")
    folder = Path(f"{head}{slash}" or ".").expanduser()
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    paths = (
        f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}"
        for path in found
        if is_plain(path.name)
        and (path.suffix == EXPORTED or (path.is_dir() and path.name[0] != "."))
    )
    return [path for path in paths if path.startswith(incomplete)]
