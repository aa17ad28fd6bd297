"""The bus of `moorings up`: users of its own, and nobody else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from contracts.topics import STATE
from moorings.bus_client import BusLogin, open_client
from moorings.errors import BadInputError
from moorings.local.bus_users import LocalUsers
from moorings.local.nats_server import LocalServer
from runtime.errors import NotAllowedError
from runtime.users import USERS


async def test_who_has_no_password_of_the_stack_is_kept_out(tmp_path: Path) -> None:
    """Each user is let in, with the rights that it has on a cluster."""
    users = LocalUsers(tmp_path / "users")
    users.make()
    server = LocalServer(tmp_path / "nats", users=users)
    server.start()
    try:
        for user in USERS:
            async with open_client(server.url, "local", login=users.login_of(user)):
                pass
        wrong = LocalUsers(tmp_path / "wrong")
        wrong.make()
        for login in (BusLogin(), wrong.login_of("solver")):
            with pytest.raises(BadInputError, match="refuses user"):
                async with open_client(server.url, "local", login=login):
                    pass
        platform = users.login_of("platform")
        async with open_client(server.url, "local", login=platform) as client:
            with pytest.raises(NotAllowedError):
                await client.bus.read_last(STATE, "local", "Node", "n")
    finally:
        server.stop()


def test_only_their_owner_reads_the_passwords(tmp_path: Path) -> None:
    """New ones each time, in files that were there, too."""
    users = LocalUsers(tmp_path / "users")
    users.make()
    file = users.password_file("solver")
    before = file.read_text()
    file.chmod(0o644)
    users.make()

    assert file.read_text() != before
    found = [users.folder, *users.folder.rglob("*")]
    rights = {path: stat.S_IMODE(path.stat().st_mode) for path in found}
    assert {oct(mode) for path, mode in rights.items() if path.is_file()} == {"0o600"}
    assert {oct(mode) for path, mode in rights.items() if path.is_dir()} == {"0o700"}
