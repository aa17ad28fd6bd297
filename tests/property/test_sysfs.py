"""No tree of files, however hostile, ends the source `sysfs` or leads it elsewhere.

Drawn trees have what a broken kernel, a broken capture or an attacker may leave: files
of garbage, folders and links in place of files, loops, links out of the tree, pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from contracts.ids import NodeName
from contracts.validate.devices import check_device
from nodeagent.cdi import find_violations
from nodeagent.errors import SourceError
from nodeagent.sources.sysfs.hotplug import HotPlug
from nodeagent.sources.sysfs.source import SysfsSource
from nodeagent.sources.sysfs.tree import Tree
from tests.builders.sysfs import lay_out, make_spec

NODE = NodeName("n1")
OUTSIDE = "not-in-the-tree"
FIXTURES = ("xeon-nvme-connectx3", "domain-32-bits", "hgx-h100")

contents = st.one_of(
    st.binary(max_size=64),
    st.sampled_from(
        [
            b"",
            b"\0" * 20,
            b"9" * 400,
            b"0x" + b"f" * 80,
            b"-1",
            b"x" * 5000,
            b"TOTAL_ERR_FATAL 99999999999999999999999",
            b"TOTAL_ERR_FATAL 1",
            b"down",
            b"1: DOWN",
            b"\xff\xfe\xfd",
            b"\xef\xbc\x91",
            b"DEVNAME=../../etc/shadow",
        ]
    ),
)
targets = st.sampled_from(
    [
        "..",
        ".",
        "../../..",
        "/etc",
        "/",
        "../outside",
        "../outside/file",
        "self",
        "gone",
    ]
)
damages = st.one_of(
    st.tuples(st.just("file"), contents),
    st.tuples(st.just("link"), targets),
    st.tuples(st.just("folder"), st.none()),
    st.tuples(st.just("pipe"), st.none()),
    st.tuples(st.just("gone"), st.none()),
)
names = st.sampled_from(
    [
        "vendor",
        "class",
        "numa_node",
        "driver",
        "net",
        "infiniband",
        "infiniband_verbs",
        "block",
        "nvme",
        "virtio0",
        "ras",
        "accel",
        "physfn",
        "aer_dev_fatal",
        "\u202efile",
        "nvme0n1",
        "0000:00:1f.0",
        "-" * 200,
    ]
)


def paths(root: Path) -> Iterator[Path]:
    """Go through all places of a tree, the deepest last."""
    for folder, folders, files in os.walk(root):
        for name in sorted((*folders, *files)):
            yield Path(folder, name)


def damage(path: Path, kind: str, value: bytes | str | None) -> None:
    """Put something else in a place; what cannot be put there stays as it is."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.rename(path.with_name(f"{path.name}.was"))
        elif os.path.lexists(path):
            path.unlink()
        if isinstance(value, bytes):
            path.write_bytes(value)
        elif kind == "link":
            path.symlink_to(path.name if value == "self" else str(value))
        elif kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)


@st.composite
def broken_trees(
    draw: st.DrawFn,
) -> tuple[str, list[tuple[int, str, tuple[str, object]]]]:
    """Draw a captured tree and what happens to some of its places, or beside them."""
    name = draw(st.sampled_from(FIXTURES))
    places = st.tuples(st.integers(0, 2000), st.one_of(st.just(""), names), damages)
    return name, draw(st.lists(places, min_size=1, max_size=12))


async def look(root: Path) -> str:
    """Do all that a source does, twice; gives all that it said."""
    spec = make_spec(root, {}, offerUsedDisks=True, rescanSeconds=0.1)
    source = SysfsSource(spec, NODE, Tree(root), HotPlug(None))
    said = []
    for moment in range(2):
        with contextlib.suppress(SourceError):
            readings = await source.read(float(moment))
            devices = await source.discover(NODE)
            said += [repr(readings), repr(devices)]
            for pool in devices.pools:
                for device in pool.devices:
                    assert list(check_device(device, "", selects_nodes=False)) == []
            for device_id in devices.device_ids:
                with contextlib.suppress(SourceError):
                    edits = await source.edits(device_id)
                    assert list(find_violations(edits)) == []
                    said.append(repr(edits))
    source.close()
    return "".join(said)


@given(broken_trees())
def test_no_tree_ends_the_source_or_leads_it_elsewhere(
    drawn: tuple[str, list[tuple[int, str, tuple[str, object]]]],
) -> None:
    """What it says stays valid by the API server's rules and those of CDI."""
    name, places = drawn
    with tempfile.TemporaryDirectory() as folder:
        outside = Path(folder, "outside")
        outside.mkdir()
        for file in ("file", "vendor", "class", "size", "operstate"):
            (outside / file).write_text(OUTSIDE)
        root = lay_out(name, Path(folder, "sys"))
        for index, beside, (kind, value) in places:
            there = list(paths(root))
            path = there[index % len(there)]
            if beside:
                path = path.parent / beside
            assert value is None or isinstance(value, bytes | str)
            damage(path, kind, value)
        assert OUTSIDE not in asyncio.run(look(root))
