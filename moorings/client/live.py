"""Gangs on a bus, from Python: submit them, follow them, ask why and what if."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Self

import msgspec
from msgspec import Struct

from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import CancelGang, ReleaseGang
from contracts.topics import GANG_TOPICS, Topic
from moorings.bus_client import BusLogin, Client, open_client
from moorings.errors import BadInputError, UsageError
from moorings.local.bus_users import LocalUsers
from moorings.local.state import find_stack, find_state_home
from moorings.manifests import read_gang
from moorings.stories import collect_stories
from moorings.views.gangs import explain_story, view_gang
from runtime.log import be_quiet
from runtime.users import PLATFORM, USERS, role_of
from runtime.waits import together

Row = dict[str, Any]


class GangStatus(Struct, frozen=True, kw_only=True):
    """How a gang is, as `moorings get gangs` shows it."""

    namespace: str
    name: str
    uid: str
    phase: str
    """`Pending`, `Decided`, `Allocated`, `Running`, `Completed`, `Cancelled` or
    `Rejected`."""
    priority: int
    pods: int
    nodes: int
    """On which it has devices."""
    since: str
    """When it was submitted, as RFC 3339."""
    reason: str
    """Why it waits, or was rejected; empty: it does not."""
    starts_by: str = ""
    """When a gang that waits starts at the latest, as RFC 3339; empty: nobody knows."""
    ends_by: str = ""
    """When a gang that has devices ends at the latest, by its duration; as above."""

    @property
    def is_over(self) -> bool:
        """True if no other phase can follow."""
        return self.phase in ("Completed", "Cancelled", "Rejected")

    @classmethod
    def of(cls, record: GangRecord) -> Self:
        """Show what is known of a gang."""
        view = view_gang(record)
        view["starts_by"] = (view["expectedStart"] or {}).get("time", "")
        view["ends_by"] = view["endsBy"]
        return cls(**{name: view[name] for name in cls.__struct_fields__})


class Remedy(Struct, frozen=True, kw_only=True):
    """A change that was tried for a gang that waits, and whether it gets devices."""

    text: str
    """Such as `gang team-a/train ends (it holds 40 devices)`."""
    helps: bool
    reasons: tuple[str, ...] = ()
    """Why it waits even so."""


@asynccontextmanager
async def connect_async(
    server: str = "",
    *,
    cluster: str = "local",
    user: str = "",
    password_file: str = "",
    ca_file: str = "",
) -> AsyncIterator[AsyncSession]:
    """Open a session with a bus.

    Args:
        server: such as `nats://127.0.0.1:4222`; empty: that of `moorings up`.
        cluster: as the solver's `SOLVER_CLUSTER`.
        user: `platform` may submit, follow and end gangs, `viewer` may see everything
            and change nothing. Empty: as `MOORINGS_BUS_USER`, `_BUS_PASSWORD_FILE` and
            `_BUS_CA_FILE` say; beside `moorings up` the platform.
        password_file: with the user's password, or `user:password`.
        ca_file: the CA of the server, as PEM; empty: no TLS.

    Raises:
        BadInputError: nobody answers, or the user is refused.
        UsageError: a bus has no such user.
        LocalStackError: no server is named, and no `moorings up` runs.
    """
    if user and role_of(user) not in USERS:
        raise UsageError(f"no user {user!r}: the users of a bus are {', '.join(USERS)}")
    login = BusLogin(user=user, password_file=password_file, ca_file=ca_file)
    if not server:
        stack = find_stack(find_state_home())
        server, login = stack.server, LocalUsers(stack.users).login_of(user or PLATFORM)
    elif not user:
        login = BusLogin.of_environment()
    be_quiet()
    async with open_client(server, cluster, login=login) as client:
        yield AsyncSession(client)


class AsyncSession:
    """Gangs on a bus, for programs with an event loop; made by `connect_async`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def submit(self, gang: Mapping[str, Any]) -> str:
        """Submit a Gang object; returns its uid.

        With a `metadata.uid` of your own, what is sent twice is one submission.

        Raises:
            BadInputError: it is no Gang, or not valid; field and rule are named.
            NotStoredError: the bus has no room for it.
        """
        if not isinstance(gang, Mapping):
            raise BadInputError("gang", f"expected an object, got {gang!r:.40}")
        uid, _ = await self._client.submit(read_gang("gang", dict(gang))[1])
        return uid

    async def cancel(self, name: str, *, namespace: str | None = None) -> None:
        """Cancel a gang that is no longer wanted; see `find` for its name."""
        await self._end(CancelGang, name, namespace)

    async def release(self, name: str, *, namespace: str | None = None) -> None:
        """Release a gang whose work is done; see `find` for its name."""
        await self._end(ReleaseGang, name, namespace)

    async def _end(
        self, kind: type[CancelGang | ReleaseGang], name: str, namespace: str | None
    ) -> None:
        record = await self._client.find_gang(name, namespace)
        message = kind(
            cluster=self._client.cluster, namespace=record.namespace, uid=record.uid
        )
        await self._client.send_command(message)

    async def gangs(self) -> list[GangStatus]:
        """List all gangs of the cluster, oldest first.

        Raises:
            CannotReadError: our user may not read what is said of gangs.
        """
        return [GangStatus.of(record) for record in await self._client.fetch_gangs()]

    async def find(self, name: str, *, namespace: str | None = None) -> GangStatus:
        """Find a gang by its name, `namespace/name`, uid or the start of its uid.

        Raises:
            UnknownNameError: there is none, or more than one.
        """
        return GangStatus.of(await self._client.find_gang(name, namespace))

    async def follow(
        self, name: str, *, namespace: str | None = None
    ) -> AsyncGenerator[GangStatus, None]:
        """Follow a gang from now on, until it is over: each status that is new.

        Raises:
            UnknownNameError: there is none, or more than one.
        """
        record = await self._client.find_gang(name, namespace)
        shown: GangStatus | None = None
        async with aclosing(_follow(self._client, record)) as changes:
            async for changed in changes:
                status = GangStatus.of(changed)
                if status != shown:
                    yield status
                shown = status
                if status.is_over:
                    return

    async def explain(self, name: str, *, namespace: str | None = None) -> list[Row]:
        """Explain where a gang is, or why it waits.

        A row for each submission of that name that is alive, else of the last: its
        `phase`, `reasons` (`rule`, `subject`, `field`, `message` and the counts as
        `facts`), and `members` with their nodes, claims and devices. `moorings explain`
        shows these, and more of what it may read beside them.

        Raises:
            UnknownNameError: there is none.
        """
        records = await self._client.find_gangs(name, namespace)
        written = await self._client.fetch_written(records)
        stories = collect_stories(records, ())
        return [row for s in stories for row in explain_story(s, written, None)]

    async def what_helps(
        self, name: str, *, namespace: str | None = None
    ) -> list[Remedy]:
        """Find the smallest change of each kind that would let a gang in.

        Its last recorded batch is solved again with it, and with less of it; quota to
        raise, and a time to wait until, are asked of the cluster as it is. Nothing is
        changed in the cluster. Changes that suffice come first. The user must see
        everything, as a viewer does.

        Raises:
            CannotReadError: it may not.
            UnknownNameError: there is none, or no solve of it is recorded any longer.
        """
        from moorings.console.helping import find_help  # noqa: PLC0415  # OR-Tools is slow to import

        record = await self._client.find_gang(name, namespace)
        found = await find_help(self._client, record)
        tried = [
            Remedy(text=row["text"], helps=row["helps"], reasons=tuple(row["reasons"]))
            for row in found["tried"]
        ]
        return sorted(tried, key=lambda change: not change.helps)

    async def what_if(
        self,
        name: str,
        *,
        namespace: str | None = None,
        pods: Mapping[str, int] | None = None,
        priority: int | None = None,
        end: Sequence[str] = (),
        heal: bool = False,
        add_nodes: int = 0,
        like: str = "",
    ) -> Row:
        """Solve a gang's last recorded batch again with changes, and compare.

        The user must see everything, as a viewer does.

        Args:
            name: the gang; see `find`.
            namespace: of the gang, where `name` does not say it.
            pods: pods by member, in place of those it asks for.
            priority: of the gang.
            end: gangs that would end, by `namespace/name`.
            heal: all devices are healthy and all nodes ready.
            add_nodes: so many more nodes, as the node `like` is, with all devices free.
            like: a node of the batch.

        Returns:
            `solve`, and `gangs` and `nodes` that differ, each with `before` and
            `after`: a gang's `verdict`, `pods`, `nodes` and `reasons`.

        Raises:
            CannotReadError: the user may not.
            UnknownNameError: there is none, or no solve of it is recorded any longer.
            BadInputError: a change names what is not in the batch.
        """
        from moorings.console.helping import ask_what_if  # noqa: PLC0415
        from moorings.console.what_if import WhatIf  # noqa: PLC0415

        record = await self._client.find_gang(name, namespace)
        asked = {
            "pods": {f"{record.uid}/{m}": n for m, n in dict(pods or {}).items()},
            "priorities": {} if priority is None else {str(record.uid): priority},
            "end": list(end),
            "heal": heal,
            "addNodes": add_nodes,
            "like": like,
        }
        try:
            what_if = msgspec.convert(asked, WhatIf)
        except msgspec.ValidationError as error:
            raise BadInputError("what-if", str(error)) from error
        return await ask_what_if(self._client, record, what_if)


async def _follow(
    client: Client, record: GangRecord
) -> AsyncGenerator[GangRecord, None]:
    """Go through what becomes of a gang, each of its messages taken in."""
    messages: asyncio.Queue[tuple[LifecycleMessage, int] | None] = asyncio.Queue()
    stop = asyncio.Event()

    async def read(topic: Topic[LifecycleMessage]) -> None:
        names = (client.cluster, record.namespace, record.uid)
        async for batch in client.bus.read(
            topic, *names, stop=stop, survives_restart=True
        ):
            for incoming in batch.messages:
                if incoming.message is not None:
                    await messages.put((incoming.message, incoming.sequence))

    reading = asyncio.create_task(together(map(read, GANG_TOPICS)))
    reading.add_done_callback(lambda _: messages.put_nowait(None))
    try:
        yield record
        while (entry := await messages.get()) is not None:
            record = record.apply(*entry)
            yield record
    finally:
        stop.set()
        await reading
