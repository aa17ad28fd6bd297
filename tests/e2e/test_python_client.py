"""The public Python API beside a running stack, with and without an event loop."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.topics import STATE
from moorings import bus_client
from moorings.client import (
    BadInputError,
    CannotReadError,
    GangStatus,
    Session,
    UnknownNameError,
    UsageError,
    connect,
    connect_async,
)
from moorings.views.times import show_time
from runtime.wire import Outgoing
from tests.builders.inputs import TRAIN
from tests.builders.queues import cluster_queue, flavor, local_queue, observed
from tests.lab import shell
from tests.lab.command_line import open_as, read_server, stack_up

WITHIN_S = 60.0
Json = dict[str, Any]


def gang(name: str, pods: int, gpus: int = 8, **spec: Any) -> Json:
    """Write a gang of simulated GPUs."""
    (member,) = TRAIN["spec"]["members"]
    (claim,) = member["claims"]
    exactly = {"deviceClassName": "gpu.moorings.dev", "count": gpus}
    gpu = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    members = [{**member, "count": pods, "claims": [{**claim, "spec": gpu}]}]
    metadata = {"name": name, "namespace": "team-a"}
    asked = {"members": members, **spec}
    return {**TRAIN, "metadata": metadata, "spec": asked}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A stack of eight nodes with eight GPUs each, found as `moorings up` is."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, stack_up(home) as process:
        patch.setenv("XDG_STATE_HOME", str(home))
        yield read_server(process)


def follow_until(session: Session, name: str, said: str) -> GangStatus:
    """Follow a gang until its phase or the rule of its reason is this."""
    for status in session.follow(name):
        if said in (status.phase, status.reason.partition(" ")[0]):
            return status
    raise AssertionError(name)


@pytest.mark.usefixtures("stack")
def test_a_program_without_a_loop_submits_follows_and_asks() -> None:
    with connect() as session:
        session.submit(gang("train", 6, duration="1h"))
        assert follow_until(session, "train", "Allocated").nodes == 6
        session.submit(gang("waits", 4, priority=1))
        waits = follow_until(session, "waits", "DevicesTaken")
        assert waits.phase == "Pending"
        (explained,) = session.explain("waits")
        assert explained["reasons"][0]["rule"] == "DevicesTaken"
        with pytest.raises(CannotReadError):
            session.what_helps("waits")
        ask_what_would_help()
        session.release("train")
        assert follow_until(session, "waits", "Allocated").nodes == 4
        session.release("waits")
        *_, last = session.follow("waits")
        assert last.is_over
        assert last in session.gangs()


def ask_what_would_help() -> None:
    """As a viewer: a platform may not see who holds what."""
    with connect(user="viewer") as session:
        changes = session.what_helps("team-a/waits")
        assert changes[0].helps
        *others, wait = [change.text for change in changes if change.helps]
        (train,) = (each for each in session.gangs() if each.name == "train")
        until = re.escape(f"it waits until {show_time(train.ends_by)} (")
        assert re.fullmatch(rf"{until}5\dm\), proven", wait)
        assert others == [
            "gang team-a/train ends (it holds 48 devices)",
            "2 more nodes like gpu-0",
            "2 pods of member worker instead of 4",
        ]
        answer = session.what_if("waits", end=["team-a/train"])
        (changed,) = answer["gangs"]
        assert changed["before"]["verdict"] == "none"
        assert changed["after"]["verdict"] == "allocated"
        with pytest.raises(BadInputError, match="pods"):
            session.what_if("waits", pods={"worker": -1})
        with pytest.raises(BadInputError, match="no node"):
            session.what_if("waits", add_nodes=1, like="nowhere")


@pytest.mark.usefixtures("stack")
async def test_a_gang_that_quota_refuses_is_told_how_much_it_lacks() -> None:
    queue = cluster_queue("small", {"any": {"gpu.moorings.dev": 8}})
    async with open_as("publisher", Path(os.environ["XDG_STATE_HOME"])) as client:
        for raw in (flavor("any"), queue, local_queue("team-q", "small")):
            await client.bus.publish(Outgoing.of(STATE, observed(raw, client.cluster)))
    raw = gang("refused", 2)
    raw = {**raw, "metadata": {"name": "refused", "namespace": "team-q"}}
    async with connect_async() as session, asyncio.timeout(WITHIN_S):
        uid = await session.submit(raw)
        async for status in session.follow(uid):
            if status.reason.startswith("QuotaExceeded"):
                break
        async with connect_async(user="viewer") as viewer:
            (change,) = await viewer.what_helps(uid)
        await session.cancel(uid)
    assert change.helps
    assert change.text == (
        "ClusterQueue small has a quota of 16 instead of 8 gpu.moorings.dev of "
        "flavor any"
    )


@pytest.mark.usefixtures("stack")
async def test_a_session_may_be_one_of_many_tasks() -> None:
    async with connect_async() as session, asyncio.timeout(WITHIN_S):
        uids = await asyncio.gather(
            *(session.submit(gang(f"small-{n}", 1, 1)) for n in range(4))
        )
        for uid in uids:
            async for status in session.follow(uid):
                if status.phase == "Allocated":
                    break
            await session.cancel(uid)


@pytest.mark.usefixtures("stack")
def test_the_page_submits_and_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of docs/python.md."""
    submits, looks = shell.blocks("docs/python.md", "## Gangs on a bus", "python")
    exec(submits, {})  # noqa: S102  # our own
    assert "Allocated" in capsys.readouterr().out
    exec(looks, {})  # noqa: S102  # our own
    assert "team-a train Completed" in capsys.readouterr().out


def test_what_is_wrong_is_said(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect() as session:
        with pytest.raises(UnknownNameError, match="nobody"):
            session.find("nobody")
        with pytest.raises(BadInputError, match=r"spec\.member"):
            session.submit({**gang("typo", 1), "spec": {"member": []}})
        with pytest.raises(BadInputError, match="expected an object"):
            session.submit("gang.yaml")  # type: ignore[arg-type]
    monkeypatch.setattr(bus_client, "CONNECT_S", 1.0)
    with pytest.raises(UsageError, match="no user 'root'"), connect(user="root"):
        pass
    with pytest.raises(BadInputError, match="refuses user"), connect(stack):
        pass
    unanswered = connect("nats://127.0.0.1:1")
    with pytest.raises(BadInputError, match="nobody answers"), unanswered:
        pass
