"""What `get` lists, and how it is printed: once, or again and again as it changes."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, structs

from moorings.cli.jsonpath import Template
from moorings.cli.output import NOTHING, Format, notify, say, show, show_table
from moorings.errors import UnknownNameError, UsageError
from runtime.waits import first_of, together

if TYPE_CHECKING:
    from contracts.topics import Topic
    from moorings.bus_client import Client

FORMS = ("table", "wide", "json", "yaml", "name")
_JSONPATH = "jsonpath="
LOOK_S = 5.0
"""Longest time between two looks at what is watched."""
GATHER_S = 0.5
"""Changes within this time are one look."""


class ListForm(NamedTuple):
    """How a list is printed."""

    kind: str = "table"
    template: Template | None = None

    @classmethod
    def parse(cls, text: str) -> ListForm:
        """Read what follows `-o`.

        Raises:
            UsageError: there is no such format.
        """
        if text.startswith(_JSONPATH):
            return cls("jsonpath", Template(text.removeprefix(_JSONPATH)))
        if text not in FORMS:
            known = ", ".join((*FORMS, f"{_JSONPATH}TEMPLATE"))
            raise UsageError(f"get: unknown --output {text!r}; the formats are {known}")
        return cls(text)


class Listing(Struct, kw_only=True):
    """Things of one kind, as rows."""

    what: str
    """The kind, as it stands before a name: `node`."""
    names: list[str]
    """By which each is known from one list to the next."""
    views: list[Any]
    columns: Sequence[str]
    rows: list[list[str]]
    nothing: str = NOTHING
    below: Sequence[str] = ()
    """Lines below the table."""
    notices: Sequence[str] = ()
    """Lines beside it, on standard error."""
    is_one: bool = False
    """True if one was asked for by its name."""
    hidden: frozenset[str] = frozenset()
    """Those that are shown only where they change while somebody watches."""

    def choose(self, names: Collection[str]) -> Listing:
        """Leave all others out."""
        kept = [number for number, name in enumerate(self.names) if name in names]
        return structs.replace(
            self,
            names=[self.names[number] for number in kept],
            views=[self.views[number] for number in kept],
            rows=[self.rows[number] for number in kept],
        )

    @property
    def shown(self) -> Listing:
        """What is shown of it."""
        return self.choose(set(self.names) - self.hidden) if self.hidden else self


def find_views(
    views: list[dict[str, Any]], what: str, name: str
) -> list[dict[str, Any]]:
    """Find what has just this name.

    Raises:
        UnknownNameError: nothing has.
    """
    matches = [view for view in views if view["name"] == name]
    if not matches:
        names = sorted({view["name"] for view in views})
        raise UnknownNameError(what, name, difflib.get_close_matches(name, names))
    return matches


def print_listing(listing: Listing, form: ListForm) -> None:
    """Print a list, and what is to be known beside it."""
    for notice in listing.notices:
        notify(notice)
    _print(listing.shown, form)


def _print(listing: Listing, form: ListForm, widths: Sequence[int] = ()) -> list[int]:
    """Print a list; returns the widths of its table, which another may go on with."""
    match form.kind:
        case "name":
            for view in listing.views:
                say(f"{listing.what}/{_name_of(view)}")
        case "jsonpath" if form.template is not None:
            views = listing.views
            root = views[0] if listing.is_one and views else {"items": views}
            for line in form.template.render(root).removesuffix("\n").split("\n"):
                say(line)
        case "json" | "yaml":
            show(listing.views, Format(form.kind), (), ())
        case _:
            widths = show_table(listing.columns, listing.rows, listing.nothing, widths)
            for line in listing.below:
                say(line)
    return list(widths)


def _name_of(view: Mapping[str, Any]) -> str:
    """Return the name by which `get` finds it again: a device's with its pool."""
    parts = (view[key] for key in ("driver", "pool", "name") if key in view)
    return "/".join(parts)


async def watch_listing(
    client: Client,
    fetch: Callable[[], Awaitable[Listing]],
    topics: Sequence[Topic[Any]],
    form: ListForm,
) -> None:
    """Print a list, and from then on what of it changes, until cancelled.

    It is fetched again when something is said on one of the topics.
    """
    changed, stop = asyncio.Event(), asyncio.Event()

    async def listen(topic: Topic[Any]) -> None:
        async for batch in client.bus.read(
            topic, client.cluster, stop=stop, start="new", survives_restart=True
        ):
            if batch.messages:
                changed.set()

    async def look() -> None:
        printer = ChangesPrinter(form)
        while True:
            changed.clear()
            printer.print_changes(await fetch())
            await first_of(changed, within_s=LOOK_S)
            await asyncio.sleep(GATHER_S)

    await together((look(), *map(listen, topics)))


class ChangesPrinter:
    """Prints of each list what differs from the one before."""

    def __init__(self, form: ListForm) -> None:
        self._form = form
        self._shown: dict[str, Any] | None = None
        self._notices: Sequence[str] = ()
        self._widths: list[int] = []

    def print_changes(self, listing: Listing) -> None:
        """Print all of the first list, then what changed."""
        for notice in listing.notices:
            if notice not in self._notices:
                notify(notice)
        now = dict(zip(listing.names, map(_without_age, listing.views), strict=True))
        part = listing.shown
        if self._shown is not None:
            before = self._shown
            part = listing.choose({n for n, v in now.items() if before.get(n) != v})
        if part.names:
            self._widths = _print(part, self._form, self._widths)
        self._shown, self._notices = now, listing.notices


def _without_age(view: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row without what only the clock changes."""
    return {key: value for key, value in view.items() if key != "age"}
