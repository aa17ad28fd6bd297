"""Reads a tree of small files, as /sys is one, and never leaves it.

The tree may be a captured one or a mount of a host's, so nothing in it is believed:
links are followed inside the tree only, files are read if they are regular, to a
bound and without waiting, and a name is one part of a path.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from nodeagent.sources.sysfs.folder import TreeError

MAX_BYTES = 4096
"""Largest attribute of the kernel (Documentation/filesystems/sysfs.rst)."""
MAX_ENTRIES = 4096
"""Most entries of a folder that are read."""


class TreeFolder:
    """A folder inside the tree, by its real path."""

    def __init__(self, tree: Tree, real: str) -> None:
        self._tree = tree
        self._real = real
        self._parts = Path(real).relative_to(tree.root).parts

    @property
    def parts(self) -> tuple[str, ...]:
        """Its real path below the root."""
        return self._parts

    @property
    def name(self) -> str:
        """The last part of its real path; empty: the root."""
        return self.parts[-1] if self.parts else ""

    @property
    def identity(self) -> tuple[int, int]:
        """Its file system and number there: equal for one folder mounted twice.

        Raises:
            TreeError: it is gone.
        """
        try:
            found = Path(self._real).stat()
        except OSError as error:
            raise TreeError(self._real, _reason(error)) from error
        return found.st_dev, found.st_ino

    def names(self) -> tuple[str, ...]:
        """List what is in it, sorted; what cannot be listed has nothing.

        Names that are no text are left out.
        """
        names: list[str] = []
        try:
            with os.scandir(self._real) as entries:
                for entry in entries:
                    if len(names) == MAX_ENTRIES:
                        break
                    if entry.name.isprintable():
                        names.append(entry.name)
        except OSError:
            return ()
        return tuple(sorted(names))

    def has(self, name: str) -> bool:
        """True if there is an entry of this name."""
        return _is_name(name) and os.path.lexists(f"{self._real}/{name}")

    def link(self, name: str) -> str:
        """Return the last name that a link leads to, without going there.

        Empty: it is no link.
        """
        if not _is_name(name):
            return ""
        try:
            return Path(self._real, name).readlink().name
        except OSError:
            return ""

    def into(self, *names: str) -> TreeFolder | None:
        """Return the folder behind some names, or None."""
        if not all(map(_is_name, names)):
            return None
        try:
            return self._tree.folder("/".join((*self.parts, *names)))
        except TreeError:
            return None

    def folders(self, *names: str) -> tuple[TreeFolder, ...]:
        """List the folders in the folder behind some names."""
        parent = self.into(*names) if names else self
        if parent is None:
            return ()
        found = (parent.into(name) for name in parent.names())
        return tuple(folder for folder in found if folder is not None)

    def read(self, name: str) -> str:
        """Read a file as text, without the blanks at its ends.

        Raises:
            TreeError: there is no such regular file, or it cannot be read.
        """
        path = f"{self._real}/{name}"
        if not _is_name(name):
            raise TreeError(path, "is not a file name")
        # No link is followed, and opening a pipe does not wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise TreeError(path, _reason(error)) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise TreeError(path, "is not a regular file")
            data = os.read(descriptor, MAX_BYTES + 1)
        except OSError as error:
            raise TreeError(path, _reason(error)) from error
        finally:
            os.close(descriptor)
        if len(data) > MAX_BYTES:
            raise TreeError(path, f"has more than {MAX_BYTES} bytes")
        return data.decode("utf-8", "replace").strip("\0 \t\r\n")

    def find(self, name: str) -> str:
        """Read a file; empty: it is not there or cannot be read."""
        try:
            return self.read(name)
        except TreeError:
            return ""


class Tree:
    """A tree of files below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def folder(self, path: str) -> TreeFolder:
        """Return the folder at a path below the root, whatever links lead there.

        Raises:
            TreeError: it is not there, is not a folder, or lies outside of the tree.
        """
        try:
            real = (self.root / path).resolve(strict=True)
        except (
            OSError,
            ValueError,
            RuntimeError,
        ) as error:  # the last: a loop of links
            raise TreeError(path, _reason(error)) from error
        if not real.is_relative_to(self.root):
            raise TreeError(path, "leads out of the tree")
        if not real.is_dir():
            raise TreeError(path, "is not a folder")
        return TreeFolder(self, str(real))


def _is_name(name: str) -> bool:
    return name not in {"", ".", ".."} and "/" not in name and "\0" not in name


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
