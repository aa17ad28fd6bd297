"""The source `command` with a real executable."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.errors import SourceError
from nodeagent.health import Symptom
from nodeagent.sources.command.settings import CommandSpec
from nodeagent.sources.command.source import CommandSource
from nodeagent.sources.source import NetworkDescription

NODE, DRIVER = NodeName("n-0"), DriverName("disk.example.com")


class _Lister:
    """An executable that prints a file."""

    def __init__(self, folder: Path) -> None:
        self.answer = folder / "answer"
        program = folder / "lister"
        program.write_text(f"#!/bin/sh\ncat {self.answer}\n")
        program.chmod(0o755)
        spec = CommandSpec(name="disks", driver=DRIVER, exec=(str(program),))
        self.source = CommandSource(spec, NODE)

    def says(self, devices: str) -> None:
        self.answer.write_text(f'{{"devices": [{devices}]}}')

    async def list(self) -> list[str]:
        return [str(x.device) for x in (await self.source.discover(NODE)).device_ids]


@pytest.fixture
def lister(tmp_path: Path) -> _Lister:
    return _Lister(tmp_path)


def device_id(name: str) -> DeviceID:
    return DeviceID(DRIVER, PoolName(NODE), DeviceName(name))


async def test_devices_come_and_go_as_the_command_says(lister: _Lister) -> None:
    """Each change of the listing is told once."""
    lister.says('{"name": "a"}')
    assert await lister.list() == ["a"]
    assert not (await lister.source.read(0.0)).changed
    lister.says('{"name": "a"}, {"name": "b"}')
    assert (await lister.source.read(1.0)).changed == {NODE}
    assert await lister.list() == ["a", "b"]
    assert not (await lister.source.read(2.0)).changed


async def test_how_a_device_is_changes_no_listing(lister: _Lister) -> None:
    """Health is no part of the inventory."""
    lister.says('{"name": "a"}')
    await lister.list()
    lister.says(
        '{"name": "a", "health": {"symptom": "Bad", "reason": "Hot", "message": "!"}}'
    )
    readings = await lister.source.read(1.0)
    assert not readings.changed
    (reading,) = readings.symptoms[NODE]
    assert (reading.device, reading.symptom, reading.reason, reading.message) == (
        device_id("a"),
        Symptom.BAD,
        "Hot",
        "!",
    )


async def test_a_refused_device_is_silent(lister: _Lister) -> None:
    """It stays announced as it was."""
    lister.says('{"name": "a"}')
    await lister.list()
    lister.says('{"name": "a", "colour": "red"}')
    readings = await lister.source.read(1.0)
    assert [(r.symptom, r.reason) for r in readings.symptoms[NODE]] == [
        (Symptom.SILENT, "DeviceRefused")
    ]
    assert await lister.list() == ["a"]


async def test_a_broken_answer_changes_nothing(lister: _Lister) -> None:
    """The source says so; what was listed stays."""
    lister.says('{"name": "a"}')
    await lister.list()
    lister.answer.write_text("oops")
    with pytest.raises(SourceError, match="its answer is refused: answer: JSON"):
        await lister.source.read(1.0)
    assert await lister.list() == ["a"]


async def test_a_container_gets_what_the_command_says(lister: _Lister) -> None:
    """And a variable that names the device."""
    lister.says('{"name": "a", "edits": {"deviceNodes": [{"path": "/dev/loop0"}]}}')
    await lister.list()
    edits = await lister.source.edits(device_id("a"))
    assert edits.env == ("MOORINGS_DEVICE_N_0_A=disk.example.com/n-0/a",)
    assert [node.path for node in edits.device_nodes] == ["/dev/loop0"]
    with pytest.raises(SourceError, match="b is not here"):
        await lister.source.edits(device_id("b"))


@pytest.mark.parametrize("program", ["lister", "/opt/../bin/x", "/a//b", "/x\0"])
def test_a_path_that_can_be_bent_is_refused(program: str) -> None:
    """The agent's folder and `..` decide nothing."""
    spec = CommandSpec(name="disks", driver=DRIVER, exec=(program,))
    assert [field for field, _ in spec.find_broken_rules()] == ["exec[0]"]


async def test_what_is_said_of_a_device_follows_the_command(lister: _Lister) -> None:
    """It is no part of the inventory: no slice changes by it."""
    lister.says('{"name": "a", "networkData": {"interfaceName": "net1"}}')
    await lister.list()
    first = await lister.source.describe(device_id("a"))
    assert first.network == NetworkDescription(interface="net1")
    lister.says('{"name": "a", "data": {"speed": 100}}')
    assert not (await lister.source.read(1.0)).changed
    second = await lister.source.describe(device_id("a"))
    assert (second.network, second.data) == (None, {"speed": 100})
