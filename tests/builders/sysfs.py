r"""Lays a tree of /sys out as files: a captured one of `tests/data/sysfs`, or another.

A `.tree` file has a section `[folder]` for each folder, and in it `path = content` for
a file, with `\n` for a new line, and `path -> target` for a link.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nodeagent.sources.sysfs.spec import SysfsSpec

CAPTURED = Path(__file__).parents[1] / "data" / "sysfs"
DRIVER = "pci.example.com"


def lay_out(name: str, root: Path) -> Path:
    """Make the files of a captured tree below a folder, and return that folder."""
    lay_out_text((CAPTURED / f"{name}.tree").read_text(), root)
    return root


def lay_out_text(text: str, root: Path) -> None:
    """Make the files of a tree that is given as text."""
    folder = root
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            folder = root / line.strip("[]")
            folder.mkdir(parents=True, exist_ok=True)
            continue
        link, arrow, target = line.partition(" -> ")
        name, _, content = line.partition(" =")
        path = folder / (link if arrow else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if arrow:
            path.symlink_to(target)
        else:
            content = content.removeprefix(" ").replace("\\n", "\n")
            path.write_text(f"{content}\n" if content else "")


def make_spec(root: Path, *select: dict[str, Any], **others: Any) -> SysfsSpec:
    """Make settings as the sources file has them; nothing is mounted, no names."""
    mountinfo = root.parent / f"{root.name}.mountinfo"
    if not mountinfo.exists():
        mountinfo.write_text("")
    written = {
        "kind": "sysfs",
        "name": "pci",
        "driver": DRIVER,
        "select": list(select),
        "root": str(root),
        "pciIds": [],
        "mountinfo": str(mountinfo),
        **others,
    }
    return msgspec.convert(written, SysfsSpec)
