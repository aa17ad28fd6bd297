"""Which server is asked is what was said, else what runs here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorings.bus_client import BusLogin
from moorings.cli import connecting
from moorings.cli.options import SERVER_VARIABLE
from moorings.errors import LocalStackError, UsageError
from moorings.local.state import RunningStack, claim_folder, write_state

OTHER = "nats://other"


class Said(str):
    """A client that is what was asked, and left nothing out."""

    __slots__ = ()
    unread: dict[str, str] = {}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of our own; whoever is asked only says who it is."""

    @asynccontextmanager
    async def answer(
        server: str, cluster: str, *, otherwise: str = "", login: BusLogin | None = None
    ) -> AsyncIterator[str]:
        user = "as said" if login is None else f"as {login.user}"
        yield Said(f"{server} {cluster} {user} {otherwise}".strip())

    monkeypatch.setattr("moorings.bus_client.open_client", answer)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(SERVER_VARIABLE, raising=False)
    return tmp_path / "moorings"


async def ask(server: str = "", state_dir: Path | None = None) -> object:
    async with connecting.connect(server, state_dir, "c") as client:
        return client


async def test_the_nearest_answer_to_where_the_server_is_counts(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said, then that of the usual stack, then where NATS usually is."""
    with claim_folder(home):
        write_state(home, RunningStack("nats://usual", home, ""))
        assert await ask(OTHER) == f"{OTHER} c as said"
        assert await ask() == "nats://usual c as viewer"
    config = tmp_path / "config.toml"
    config.write_text('bus-user = "me"\n')
    monkeypatch.setenv("MOORINGS_CONFIG", str(config))
    assert await ask(OTHER) == f"{OTHER} c as me"
    monkeypatch.delenv("MOORINGS_CONFIG")
    nobody = str(await ask())
    assert nobody.startswith(
        f"{connecting.DEFAULT_SERVER} c as said stack: none runs with its state in"
    )


async def test_one_of_two_stacks_is_named_by_its_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is meant more than a variable, and not together with a server."""
    second = tmp_path / "second"
    with claim_folder(home), claim_folder(second):
        write_state(home, RunningStack("nats://usual", home, ""))
        write_state(second, RunningStack("nats://second", second, ""))
        assert await ask(state_dir=second) == "nats://second c as viewer"
        monkeypatch.setenv(SERVER_VARIABLE, OTHER)
        assert await ask(OTHER, state_dir=second) == "nats://second c as viewer"
        monkeypatch.delenv(SERVER_VARIABLE)
        with pytest.raises(UsageError, match="--server and --state-dir"):
            await ask(OTHER, state_dir=second)
    with pytest.raises(LocalStackError, match=f"none runs with its state in {second}"):
        await ask(state_dir=second)
