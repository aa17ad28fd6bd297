"""A tree of small files, as its readers see it; `tree.py` makes one of a folder."""

from __future__ import annotations

from typing import Protocol


class TreeError(Exception):
    """A file or folder of the tree that is not there or may not be read."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class ReadableFolder(Protocol):
    """A folder inside the tree, by its real path."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Its real path below the root."""
        ...

    @property
    def name(self) -> str:
        """The last part of its real path; empty: the root."""
        ...

    def names(self) -> tuple[str, ...]:
        """List what is in it, sorted; what cannot be listed has nothing.

        Names that are no text are left out.
        """
        ...

    def has(self, name: str) -> bool:
        """True if there is an entry of this name."""
        ...

    def link(self, name: str) -> str:
        """Return the last name that a link leads to, without going there.

        Empty: it is no link.
        """
        ...

    def into(self, *names: str) -> ReadableFolder | None:
        """Return the folder behind some names, or None."""
        ...

    def folders(self, *names: str) -> tuple[ReadableFolder, ...]:
        """List the folders in the folder behind some names."""
        ...

    def read(self, name: str) -> str:
        """Read a file as text, without the blanks at its ends.

        Raises:
            TreeError: there is no such regular file, or it cannot be read.
        """
        ...

    def find(self, name: str) -> str:
        """Read a file; empty: it is not there or cannot be read."""
        ...


class FileTree(Protocol):
    """The whole tree."""

    def folder(self, path: str) -> ReadableFolder:
        """Return the folder at a path below the root, whatever links lead there.

        Raises:
            TreeError: it is not there, is not a folder, or lies outside of the tree.
        """
        ...
