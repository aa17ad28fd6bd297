"""Documents from files, folders and standard input, each with where it came from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from contracts.claim import DeviceClass, ResourceClaimTemplate
from contracts.device import DeviceTaintRule
from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import WritableObject, decode_object, flatten
from moorings.errors import InputError

SUFFIXES = (".yaml", ".yml", ".json")


class _Loader(yaml.CSafeLoader):
    """YAML without timestamps: Kubernetes keeps them as text."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
    for key, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def read_documents(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Go through all documents: (source, parsed object); Lists are taken apart.

    Raises:
        InputError: a file cannot be read, or is no YAML or JSON.
    """
    for name in names:
        for source, text in _texts(name):
            try:
                for number, found in enumerate(
                    yaml.load_all(text, _Loader), start=1
                ):  # a safe loader
                    if found is not None:
                        where = (
                            source if number == 1 else f"{source}, document {number}"
                        )
                        yield from ((where, item) for item in flatten(found))
            except (yaml.YAMLError, ContractsError) as error:
                reason = " ".join(str(error).split())
                raise InputError(source, reason) from error


def _texts(name: str) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "standard input", sys.stdin.read()
        return
    path = Path(name)
    try:
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
            if not found:
                raise InputError(name, "the folder has no .yaml, .yml or .json file")
            for file in found:
                yield str(file), file.read_text()
        else:
            yield name, path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(name, str(reason)) from error


def read_gangs(names: list[str]) -> list[tuple[str, Gang]]:
    """Read Gangs, each with its source.

    Raises:
        InputError: a document is no Gang.
    """
    gangs = []
    for source, raw in read_documents(names):
        try:
            value = decode_object(raw).value
        except ContractsError as error:
            raise InputError(source, str(error)) from error
        if not isinstance(value, Gang):
            raise InputError(source, f"expected a Gang, got {raw.get('kind')}")
        gangs.append((source, value))
    return gangs


def read_state(names: list[str]) -> list[WritableObject]:
    """Read what a cluster would hold: DeviceClasses, templates and taint rules.

    Raises:
        InputError: a document is none of these.
    """
    found: list[WritableObject] = []
    for source, raw in read_documents(names):
        try:
            value = decode_object(raw).value
        except ContractsError as error:
            raise InputError(source, str(error)) from error
        if not isinstance(value, DeviceClass | ResourceClaimTemplate | DeviceTaintRule):
            kind = raw.get("kind")
            wanted = "a DeviceClass, ResourceClaimTemplate or DeviceTaintRule"
            raise InputError(source, f"expected {wanted}, got {kind}")
        found.append(value)
    return found
