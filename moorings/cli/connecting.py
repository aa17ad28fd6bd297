"""The bus that the options of a command name; says in the end what was not read."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from contracts.counts import counted
from moorings.cli.config import Config, read_config
from moorings.cli.logs import quiet_logs
from moorings.cli.options import SERVER_VARIABLE
from moorings.cli.output import notify
from moorings.errors import LocalStackError, UsageError
from moorings.local.state import find_stack, find_state_home

if TYPE_CHECKING:
    from moorings.bus_client import BusLogin, Client

DEFAULT_SERVER = "nats://127.0.0.1:4222"
MOST_UNREAD = 10
"""Messages that are named when they cannot be read; the others are counted."""


class Connecting(Struct, frozen=True, kw_only=True):
    """The options of a command that name a bus."""

    server: str
    state_dir: Path | None
    cluster: str

    def connect(self, user: str = "viewer") -> AbstractAsyncContextManager[Client]:
        """Connect as `connect` does."""
        return connect(self.server, self.state_dir, self.cluster, user)


def connect(
    server: str, state_dir: Path | None, cluster: str, user: str = "viewer"
) -> AbstractAsyncContextManager[Client]:
    """Connect to the bus that the options of a command name.

    To that of a stack of ours as its `user`: a viewer, or a platform, which may send.
    To any other as the variables say.

    Raises:
        LocalStackError: no stack runs with its state in `state_dir`.
        UsageError: both a server and a folder are given.
        BadInputError: nobody answers, when the block is entered.
    """
    opening = _open_client(server, state_dir, cluster, user)
    quiet_logs()  # of what was imported for it
    return _naming_unread(opening)


@asynccontextmanager
async def _naming_unread(
    opening: AbstractAsyncContextManager[Client],
) -> AsyncIterator[Client]:
    """Report at the end which messages could not be read."""
    async with opening as client:
        try:
            yield client
        finally:
            for subject, reason in list(client.unread.items())[:MOST_UNREAD]:
                notify(f"skipped an unreadable message: {subject}: {reason}")
            hidden = len(client.unread) - MOST_UNREAD
            if hidden > 0:
                more = counted(hidden, "more message")
                notify(f"skipped {more} that cannot be read")


def _open_client(
    server: str, state_dir: Path | None, cluster: str, user: str
) -> AbstractAsyncContextManager[Client]:
    from moorings.bus_client import open_client  # noqa: PLC0415  # slow to import

    config = read_config()
    # What is there by default gives way to what was typed.
    usual = ("", os.environ.get(SERVER_VARIABLE), config.server)
    if state_dir is not None and str(state_dir) != config.state_dir:
        if server not in usual:
            raise UsageError("--server and --state-dir exclude each other")
        return _open_stack(state_dir.absolute(), cluster, user)
    if server:
        return open_client(server, cluster, login=_read_login(config))
    if state_dir is not None:
        return _open_stack(state_dir, cluster, user)
    try:
        return _open_stack(find_state_home(), cluster, user)
    except LocalStackError as error:
        # What runs without a state folder is where NATS usually is.
        login = _read_login(config)
        return open_client(DEFAULT_SERVER, cluster, otherwise=str(error), login=login)


def _read_login(config: Config) -> BusLogin | None:
    """Complete what variables say of the login by the file; None: it says nothing."""
    if not (config.bus_user or config.bus_password_file or config.bus_ca_file):
        return None
    from moorings.bus_client import BusLogin  # noqa: PLC0415  # slow to import

    login = BusLogin.of_environment()
    return BusLogin(
        user=login.user or config.bus_user,
        password_file=login.password_file or config.bus_password_file,
        ca_file=login.ca_file or config.bus_ca_file,
    )


def _open_stack(
    folder: Path, cluster: str, user: str
) -> AbstractAsyncContextManager[Client]:
    from moorings.bus_client import open_client  # noqa: PLC0415  # slow to import
    from moorings.local.bus_users import LocalUsers  # noqa: PLC0415  # slow to import

    stack = find_stack(folder)
    login = LocalUsers(stack.users).login_of(user)
    return open_client(stack.server, cluster, login=login)
