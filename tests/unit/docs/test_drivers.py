"""docs/drivers.md: what it prints is what runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from contracts.ids import DriverName, NodeName, PoolID, PoolName
from nodeagent.sources.approve import approve
from nodeagent.sources.command.answer import read_answer
from nodeagent.sources.command.settings import CommandSpec
from nodeagent.sources.command.source import CommandSource
from nodeagent.sources.source_file import make_schema, read_sources

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "drivers.md").read_text()
NODE, DRIVER = NodeName("n-0"), DriverName("nic.moorings.dev")
CARDS = sorted(path.parent.name for path in Path("/sys/class/net").glob("*/device"))


def blocks(language: str) -> list[str]:
    """List what is printed in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def printed_driver() -> str:
    (driver,) = (block for block in blocks("sh") if block.startswith("#!"))
    return driver


def lister_of(folder: Path, root: Path) -> CommandSource:
    program = folder / "nics.sh"
    program.write_text(printed_driver())
    program.chmod(0o755)
    spec = CommandSpec(
        name="nics", driver=DRIVER, exec=(str(program), str(root)), limit_seconds=60
    )
    return CommandSource(spec, NODE)


async def test_the_printed_driver_lists_the_cards_of_this_machine(
    tmp_path: Path,
) -> None:
    """Run as printed, through the source; nothing that it says is refused."""
    source = lister_of(tmp_path, Path("/sys"))
    listed = await source.discover(NODE)
    approved = approve(listed, None, PoolID(DRIVER, PoolName(NODE)), {})
    assert approved.refusals == {}
    assert [str(found.device) for found in approved.devices.device_ids] == CARDS


async def test_the_printed_driver_tells_a_link_that_is_down(tmp_path: Path) -> None:
    """On a tree of two cards, a bridge, and a name that no device can have."""
    root = tmp_path / "sys"
    for name, carrier in (("eth0", "1"), ("eth1", "0"), ("odd_1", "1")):
        folder = root / "class" / "net" / name
        (folder / "device").mkdir(parents=True)
        (folder / "carrier").write_text(carrier)
    (root / "class" / "net" / "br0").mkdir()
    source = lister_of(tmp_path, root)
    await source.discover(NODE)
    (reading,) = (await source.read(0.0)).symptoms[NODE]
    assert (reading.device.device, reading.reason) == ("eth1", "LinkDown")
    (pool,) = (await source.discover(NODE)).pools
    assert [device.name for device in pool.devices] == ["eth0", "eth1"]
    assert (await source.edits(reading.device)).env[-1] == "NIC=eth1"


def test_the_driver_is_short_and_is_the_file() -> None:
    """At most 50 lines, printed as it lies there."""
    assert len(printed_driver().splitlines()) <= 50
    assert (DOCS / "quickstart" / "nics.sh").read_text() == printed_driver()


def test_the_printed_answer_is_one() -> None:
    """What a reader copies is taken whole."""
    (answer,) = blocks("json")
    read = read_answer(answer.encode(), {})
    assert list(read.devices) == ["eth0"]
    assert read.refusals == {}


@pytest.mark.parametrize(
    "text",
    [
        *(block for block in blocks("yaml") if "kind: Sources" in block),
        (DOCS / "quickstart" / "sources.yaml").read_text(),
    ],
)
def test_sources_files_are_read(text: str) -> None:
    """Those that are printed, and the one to copy."""
    assert read_sources(text, "sources.yaml", NODE)


def test_the_schema_is_what_is_read() -> None:
    """`moorings agent schema > docs/schemas/sources.json` brings it up to date."""
    kept = (DOCS / "schemas" / "sources.json").read_text()
    assert kept == json.dumps(make_schema(), indent=2) + "\n"
