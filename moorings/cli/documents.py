"""Documents from files, folders and standard input, each with where it came from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from contracts.claim import DeviceClass, ResourceClaimTemplate
from contracts.device import DeviceTaintRule
from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import (
    WritableObject,
    decode_object,
    find_refused_fields,
)
from contracts.kubernetes.exact import ExactDecoder
from moorings.cli.output import notify
from moorings.errors import BadInputError, UsageError
from moorings.files import read_all, read_file
from moorings.manifests import parse_documents, read_gang, read_source
from moorings.plan.objects import PlanObject
from moorings.plan.reading import Reader

SUFFIXES = (".yaml", ".yml", ".json")
NOTHING = "is empty"


def read_documents(
    names: list[str], exact: ExactDecoder | None = None
) -> Iterator[tuple[str, Any]]:
    """Go through all documents: (source, parsed object); Lists are taken apart.

    What `exact` can read comes as Decoded.

    Raises:
        UsageError: a name is empty.
        BadInputError: a file cannot be read, is not YAML or JSON, or there is no
            document, not even an empty List, in what a name stands for.
    """
    for name in names:
        if not name:
            raise UsageError("-f: the file name is empty (. is this folder)")
        is_blank = True
        for source, text in _read_texts(name):
            is_blank = is_blank and _is_blank(text)
            yield from parse_documents(source, text, exact)
        if is_blank:
            raise BadInputError(_name_source(name), NOTHING)


def _is_blank(text: str | bytes) -> bool:
    """Return True if a text has nothing but YAML markers and comments."""
    return isinstance(text, str) and all(
        not line or line in {"---", "..."} or line.startswith("#")
        for line in map(str.strip, text.splitlines())
    )


def _name_source(name: str) -> str:
    return "standard input" if name == "-" else name


def _read_texts(name: str) -> Iterator[tuple[str, str | bytes]]:
    if name == "-":
        source = _name_source(name)
        yield source, read_source(source, read_all(source, open_input()))
        return
    path = Path(name)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
        if not files:
            raise BadInputError(name, "the folder has no .yaml, .yml or .json file")
        for file in files:
            yield str(file), _read_text(file)
    else:
        yield name, _read_text(path)


def open_input() -> BinaryIO:
    """Return standard input.

    Raises:
        BadInputError: there is none.
    """
    if sys.stdin is None:  # as it is where the process began with it closed
        raise BadInputError(_name_source("-"), "is closed")
    return sys.stdin.buffer


def _read_text(path: Path) -> str | bytes:
    return read_source(str(path), read_file(path))


class ReadObjects(Struct, frozen=True, kw_only=True):
    """The objects of files, and what could not be read."""

    objects: list[PlanObject]
    failed: bool
    """True if anything relevant could not be read."""
    skipped: int
    """Objects of kinds that are not read."""


def read_objects(names: Sequence[str], *, as_stored: bool = False) -> ReadObjects:
    """Read all that can be read; the rest is named on standard error.

    `as_stored`: what the API server would not store is read as well.
    """
    reader, exact = Reader(notify, as_stored=as_stored), ExactDecoder()
    objects, failed = list[PlanObject](), False
    for name in names:
        try:
            objects.extend(reader.read(read_documents([name], exact)))
        except BadInputError as error:
            notify(f"error: {error}")
            failed = True
    failed = failed or reader.refused > 0
    if not objects and not reader.skipped and not failed:
        notify(f"error: {', '.join(map(_name_source, names))}: {NOTHING}")
        failed = True
    return ReadObjects(objects=objects, failed=failed, skipped=reader.skipped)


def read_gangs(names: list[str]) -> list[tuple[str, Gang]]:
    """Read Gangs, each with its source.

    Raises:
        BadInputError: a document is no Gang, or there is none.
    """
    gangs = [read_gang(source, raw) for source, raw in read_documents(names)]
    if not gangs:
        raise BadInputError(", ".join(map(_name_source, names)), NOTHING)
    return gangs


def read_state(names: list[str]) -> list[WritableObject]:
    """Read what a cluster would hold: DeviceClasses, templates and taint rules.

    Raises:
        BadInputError: a document is none of these.
    """
    values: list[WritableObject] = []
    for source, raw in read_documents(names):
        try:
            decoded = decode_object(raw)
        except ContractsError as error:
            raise BadInputError(source, str(error)) from error
        value = decoded.value
        if not isinstance(value, DeviceClass | ResourceClaimTemplate | DeviceTaintRule):
            kind = raw.get("kind")
            kinds = "a DeviceClass, ResourceClaimTemplate or DeviceTaintRule"
            raise BadInputError(source, f"expected {kinds}, got {kind}")
        for path in find_refused_fields(decoded):
            name = f"{decoded.kind} {value.metadata.name}"
            raise BadInputError(source, f"{name}: {path}: unknown field")
        values.append(value)
    return values
