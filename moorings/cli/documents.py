"""Documents from files, folders and standard input, each with where it came from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

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
from moorings.errors import BadInputError
from moorings.manifests import parse_documents, read_gang, to_text_or_json
from moorings.plan.objects import PlanObject
from moorings.plan.reading import Reader

SUFFIXES = (".yaml", ".yml", ".json")


def read_documents(
    names: list[str], exact: ExactDecoder | None = None
) -> Iterator[tuple[str, Any]]:
    """Go through all documents: (source, parsed object); Lists are taken apart.

    What `exact` can read comes as Decoded.

    Raises:
        BadInputError: a file cannot be read, or is no YAML or JSON.
    """
    for name in names:
        for source, text in _read_texts(name):
            yield from parse_documents(source, text, exact)


def _read_texts(name: str) -> Iterator[tuple[str, str | bytes]]:
    if name == "-":
        yield "standard input", sys.stdin.read()
        return
    path = Path(name)
    try:
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
            if not files:
                raise BadInputError(name, "the folder has no .yaml, .yml or .json file")
            for file in files:
                yield str(file), to_text_or_json(file.read_bytes())
        else:
            yield name, to_text_or_json(path.read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(name, str(reason)) from error


class ReadObjects(Struct, frozen=True, kw_only=True):
    """What files hold."""

    objects: list[PlanObject]
    failed: bool
    """Whether anything that decides could not be read."""
    skipped: int
    """Objects of kinds that are not read."""


def read_objects(names: Iterable[str], *, as_stored: bool = False) -> ReadObjects:
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
    return ReadObjects(
        objects=objects, failed=failed or reader.refused > 0, skipped=reader.skipped
    )


def read_gangs(names: list[str]) -> list[tuple[str, Gang]]:
    """Read Gangs, each with its source.

    Raises:
        BadInputError: a document is no Gang.
    """
    return [read_gang(source, raw) for source, raw in read_documents(names)]


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
