"""Nothing is read outside of a tree, and nothing in it makes a reader wait."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodeagent.sources.sysfs.folder import TreeError
from nodeagent.sources.sysfs.tree import MAX_BYTES, Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree beside a file that nobody may see."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret")
    root = tmp_path / "sys"
    (root / "devices" / "a").mkdir(parents=True)
    (root / "devices" / "a" / "vendor").write_text("0x10de\n")
    return root


def test_links_inside_are_followed(root: Path) -> None:
    (root / "bus").symlink_to("devices/a")
    folder = Tree(root).folder("bus")
    assert folder.parts == ("devices", "a")
    assert folder.read("vendor") == "0x10de"


@pytest.mark.parametrize("target", ["../secret", "devices/../../secret"])
def test_links_out_of_the_tree_are_refused(root: Path, target: str) -> None:
    (root / "bus").symlink_to(target)
    with pytest.raises(TreeError, match="leads out of the tree"):
        Tree(root).folder("bus")


def test_absolute_links_are_refused(root: Path) -> None:
    """Also where they name a folder that would be there below the root."""
    (root / "bus").symlink_to("/devices/a")
    (root / "etc").symlink_to("/etc")
    for name in ("bus", "etc"):
        with pytest.raises(TreeError):
            Tree(root).folder(name)


def test_a_folder_beside_the_root_is_outside(root: Path) -> None:
    """Even if its name begins like the root's."""
    (root.parent / "sys2").mkdir()
    (root / "bus").symlink_to("../sys2")
    with pytest.raises(TreeError, match="leads out"):
        Tree(root).folder("bus")


def test_loops_of_links_end(root: Path) -> None:
    (root / "bus").symlink_to("class")
    (root / "class").symlink_to("bus")
    with pytest.raises(TreeError):
        Tree(root).folder("bus")


@pytest.mark.parametrize("name", ["", ".", "..", "../../secret/file", "a\0b"])
def test_a_name_is_one_part_of_a_path(root: Path, name: str) -> None:
    folder = Tree(root).folder("devices/a")
    with pytest.raises(TreeError):
        folder.read(name)
    assert folder.into(name) is None
    assert not folder.has(name)
    assert folder.link(name) == ""


def test_a_file_that_is_a_link_is_not_read(root: Path) -> None:
    """Attributes are regular files: a link may lead anywhere."""
    (root / "devices" / "a" / "device").symlink_to("../../../secret/file")
    with pytest.raises(TreeError):
        Tree(root).folder("devices/a").read("device")


def test_a_pipe_without_a_writer_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "devices" / "a" / "state")
    with pytest.raises(TreeError, match="not a regular file"):
        Tree(root).folder("devices/a").read("state")


def test_a_file_is_read_to_a_bound(root: Path) -> None:
    file = root / "devices" / "a" / "model"
    file.write_text("x" * (MAX_BYTES + 1))
    with pytest.raises(TreeError, match="more than 4096 bytes"):
        Tree(root).folder("devices/a").read("model")


def test_what_is_no_text_is_read_as_far_as_it_is(root: Path) -> None:
    (root / "devices" / "a" / "model").write_bytes(b"\xff\xfeX\0\0\n")
    assert Tree(root).folder("devices/a").read("model").endswith("X")


def test_a_link_names_where_it_leads_without_going_there(root: Path) -> None:
    (root / "devices" / "a" / "driver").symlink_to("../../../../bus/drivers/nvme")
    assert Tree(root).folder("devices/a").link("driver") == "nvme"
    assert Tree(root).folder("devices/a").link("vendor") == ""


def test_what_is_gone_is_empty(root: Path) -> None:
    folder = Tree(root).folder("devices/a")
    (root / "devices" / "a" / "vendor").unlink()
    (root / "devices" / "a").rmdir()
    assert folder.names() == ()
    assert folder.find("vendor") == ""
