"""The bus-only sink: one JSON file an object, durable before anybody is told.

A file is written beside its name, flushed and renamed, so that a reader and a crash
see the old object or the new one. Leftovers of a crash are removed and damaged files
set aside when the folder is opened. Knows neither gangs nor the bus.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.codec import encode
from contracts.device import ResourceSlice
from contracts.errors import ContractsError
from contracts.kubernetes.decode import decode_object
from publisher.errors import FolderError
from publisher.folder.manifests import to_document
from publisher.steps import Create, Delete, ObjectKey, Published, Step, Update, key_of

DIRECTORIES = {"ResourceClaim": "resourceclaims", "ResourceSlice": "resourceslices"}
SUFFIX = ".json"
DAMAGED_SUFFIX = ".damaged"
_TEMPORARY_SUFFIX = ".tmp"
_LOCK = ".lock"
_SAFE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_LONGEST = 200
_DIGEST = 16


class Damaged(Struct, frozen=True, kw_only=True):
    """A file that is not the object that its name says."""

    path: str
    reason: str


class Contents(Struct, frozen=True, kw_only=True):
    """What was found in a folder."""

    objects: tuple[Published, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    """Set aside: renamed, and written anew if somebody wants them."""
    leftovers: int = 0
    """Temporary files of a crash; removed."""


class Folder:
    """Files of ours below one directory; blocking, so call it in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()

    @contextmanager
    def open(self) -> Iterator[Contents]:
        """Take the folder for this process alone and read what is there.

        Raises:
            FolderError: it cannot be read or made, or another publisher has it.
        """
        with _naming_file(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._root / _LOCK, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            with _naming_file(self._root):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    reason = "another publisher writes here"
                    raise FolderError(str(self._root), reason) from None
                contents = self._read_files()
            yield contents
        finally:
            os.close(lock)

    def read_objects(self, keys: Iterable[ObjectKey]) -> tuple[Published, ...]:
        """Read single objects; what is not there, or cannot be read, is left out."""
        objects = []
        for key in keys:
            path = self._path_of_object(key)
            with suppress(OSError):
                parsed = _parse_object(path.read_bytes(), path, self._root)
                if not isinstance(parsed, Damaged):
                    objects.append(parsed)
        return tuple(objects)

    def carry_out(self, steps: Sequence[Step[Published]]) -> None:
        """Carry out the steps; when this returns, a power failure undoes none.

        Nothing is changed before every new file is flushed.

        Raises:
            FolderError: some steps may have been carried out, each wholly.
        """
        directories: set[Path] = set()
        renames: list[tuple[Path, Path]] = []
        removed: list[Path] = []
        try:
            # First write what is new beside its name.
            for step in steps:
                path = self._path_of_object(key_of(step.object))
                directories.add(path.parent)
                match step:
                    case Create() | Update():
                        temporary = path.parent / self._temporary_name()
                        renames.append((temporary, path))
                        with _naming_file(path):
                            directories.update(_make_directory(path.parent))
                            temporary.write_bytes(_encode_object(step.object))
                    case Delete():
                        removed.append(path)
                    case _:
                        assert_never(step)
            # Then make it durable, before anything that is there is touched.
            for temporary, path in renames:
                with _naming_file(path):
                    _flush_to_disk(temporary)
            for path in removed:
                with _naming_file(path):
                    path.unlink(missing_ok=True)
            for temporary, path in renames:
                with _naming_file(path):
                    temporary.replace(path)
            # Last make the new names durable.
            for directory in sorted(directories):
                with _naming_file(directory), suppress(FileNotFoundError):
                    _flush_to_disk(directory)
        finally:
            for temporary, _ in renames:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)

    def _temporary_name(self) -> str:
        """Return a name that no other thread uses now."""
        return f".{next(self._numbers)}{_TEMPORARY_SUFFIX}"

    def _path_of_object(self, key: ObjectKey) -> Path:
        """Return an object's file; no name leads out of the folder.

        Raises:
            FolderError: the name or namespace is none that Kubernetes allows.
        """
        for name in filter(None, (key.name, key.namespace)):
            if not _SAFE.fullmatch(name):
                raise FolderError(str(self._root), f"{name!r} is not a safe file name")
        directory = self._root / DIRECTORIES[key.kind] / key.namespace
        return directory / f"{_file_stem(key.name)}{SUFFIX}"

    def _read_files(self) -> Contents:
        objects: list[Published] = []
        damaged: list[Damaged] = []
        leftovers = 0
        for kind in DIRECTORIES.values():
            for path in sorted((self._root / kind).rglob("*")):
                if path.suffix == _TEMPORARY_SUFFIX and path.name.startswith("."):
                    path.unlink()
                    leftovers += 1
                elif path.suffix == SUFFIX and path.is_file():
                    parsed = _parse_object(path.read_bytes(), path, self._root)
                    if isinstance(parsed, Damaged):
                        path.replace(path.with_name(path.name + DAMAGED_SUFFIX))
                        damaged.append(parsed)
                    else:
                        objects.append(parsed)
        return Contents(
            objects=tuple(objects), damaged=tuple(damaged), leftovers=leftovers
        )


def _file_stem(name: str) -> str:
    """Shorten names that no file may have; `~` is in no name of Kubernetes."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[:_LONGEST]}~{digest}"


def _encode_object(obj: Published) -> bytes:
    return msgspec.json.format(encode(to_document(obj)), indent=2) + b"\n"


def _parse_object(data: bytes, path: Path, root: Path) -> Published | Damaged:
    try:
        obj = decode_object(msgspec.json.decode(data)).value
    except (msgspec.DecodeError, ValueError, RecursionError, ContractsError) as error:
        return Damaged(path=str(path), reason=str(error))
    if not isinstance(obj, ResourceClaim | ResourceSlice):
        reason = f"holds a {type(obj).__name__}"
        return Damaged(path=str(path), reason=reason)
    key = key_of(obj)
    expected = Path(DIRECTORIES[key.kind], key.namespace, _file_stem(key.name) + SUFFIX)
    if path.relative_to(root) != expected:
        return Damaged(path=str(path), reason=f"holds {key.kind} {key}")
    return obj


def _make_directory(path: Path) -> list[Path]:
    """Make a directory; returns the parents whose entries are new."""
    changed: list[Path] = []
    missing = path
    while not missing.exists():
        missing = missing.parent
        changed.append(missing)
    path.mkdir(parents=True, exist_ok=True)
    return changed


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one that names the file."""
    try:
        yield
    except OSError as error:
        raise FolderError(str(path), error.strerror or str(error)) from error
