"""Files are whole, durable and inside the folder, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from publisher.errors import FolderError
from publisher.folder.files import Contents, Folder
from publisher.steps import Create, Delete, Update, key_of
from tests import builders

CLAIM = builders.claim(allocated=builders.allocation())
FILE = Path("resourceclaims", builders.NAMESPACE, "claim-1.json")


def read(root: Path) -> Contents:
    """Open the folder as a restart would."""
    with Folder(root).open() as contents:
        return contents


def test_written_objects_are_read_back(tmp_path: Path) -> None:
    """Each in a file under its kind and name."""
    objects = (CLAIM, builders.resource_slice(name="00000-slice"))
    Folder(tmp_path).carry_out([Create(item) for item in objects])
    assert read(tmp_path).objects == objects
    body = json.loads((tmp_path / FILE).read_bytes())
    assert (body["apiVersion"], body["kind"]) == ("resource.k8s.io/v1", "ResourceClaim")
    assert (tmp_path / "resourceslices" / "00000-slice.json").is_file()


def test_update_replaces_and_delete_removes(tmp_path: Path) -> None:
    """Deleting twice is deleting once."""
    folder = Folder(tmp_path)
    changed = builders.claim(builders.request(count=2))
    folder.carry_out([Create(CLAIM)])
    folder.carry_out([Update(changed)])
    assert folder.read_objects([key_of(CLAIM)]) == (changed,)
    folder.carry_out([Delete(changed), Delete(changed)])
    assert folder.read_objects([key_of(CLAIM)]) == ()
    assert read(tmp_path).objects == ()


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    """A temporary file is never taken for an object."""
    Folder(tmp_path).carry_out([Create(CLAIM)])
    leftover = (tmp_path / FILE).with_name(".3.tmp")
    leftover.write_text("{")
    contents = read(tmp_path)
    assert contents.leftovers == 1
    assert contents.objects == (CLAIM,)
    assert not leftover.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"kind"',
        b"[]",
        b"\xff\xfe",
        b"{}",
        b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "claim-1"}}',
        (
            b'{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",'
            b' "metadata": {"name": "other", "namespace": "team-a"}}'
        ),
    ],
)
def test_damaged_file_is_named_set_aside_and_written_anew(
    tmp_path: Path, content: bytes
) -> None:
    """Nothing is lost of it, and nothing is believed of it."""
    folder = Folder(tmp_path)
    folder.carry_out([Create(CLAIM)])
    (tmp_path / FILE).write_bytes(content)
    contents = read(tmp_path)
    assert contents.objects == ()
    assert [item.path for item in contents.damaged] == [str(tmp_path / FILE)]
    assert (tmp_path / FILE).with_name("claim-1.json.damaged").read_bytes() == content
    folder.carry_out([Create(CLAIM)])
    assert read(tmp_path) == Contents(objects=(CLAIM,))


@pytest.mark.parametrize(
    "name", ["..", "../up", "/etc/passwd", "a/b", "A", ".a", "a\0"]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    """A name that is not a safe file name is refused before anything is written."""
    folder = Folder(tmp_path / "folder")
    for claim in (builders.claim(name=name), builders.claim(namespace=name)):
        with pytest.raises(FolderError, match="not a safe file name"):
            folder.carry_out([Create(claim)])
    assert list(tmp_path.iterdir()) == []


def test_longest_names_have_files_of_their_own(tmp_path: Path) -> None:
    """Two names that differ only at their end do not share a file."""
    claims = [builders.claim(name="a" * 252 + end) for end in "bc"]
    Folder(tmp_path).carry_out([Create(claim) for claim in claims])
    found = sorted(read(tmp_path).objects, key=lambda item: item.metadata.name)
    assert found == claims


def test_failed_write_changes_nothing_and_names_the_file(tmp_path: Path) -> None:
    """Steps that cannot all be carried out leave what was there."""
    folder = Folder(tmp_path)
    folder.carry_out([Create(CLAIM)])
    blocked = builders.claim(namespace="blocked")
    (tmp_path / "resourceclaims" / "blocked").write_text("in the way")
    with pytest.raises(FolderError, match="blocked"):
        folder.carry_out([Delete(CLAIM), Create(blocked)])
    assert read(tmp_path) == Contents(objects=(CLAIM,))


def test_folder_has_one_publisher(tmp_path: Path) -> None:
    """A second one is told so, and takes nothing."""
    with (
        Folder(tmp_path).open(),
        pytest.raises(FolderError, match="another publisher"),
        Folder(tmp_path).open(),
    ):
        pytest.fail("opened twice")
    assert read(tmp_path) == Contents()
