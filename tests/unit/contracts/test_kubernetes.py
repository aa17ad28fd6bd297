"""Objects that other projects publish are read whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.errors import UnknownKindError
from contracts.kubernetes.decode import decode_object, flatten
from contracts.kubernetes.defaults import default_claim, default_template
from contracts.validate import validate

ROOT = Path(__file__).parents[3]
EXAMPLES = Path(
    os.environ.get("MOORINGS_DRA_DATA", ROOT.parent / "shared" / "data" / "dra")
)
UNREADABLE = {"PodGroup"}
"""Kinds that Moorings does not read."""


def objects() -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            for raw in flatten(document) if document else ():
                if raw.get("apiVersion"):
                    yield path, raw


def test_every_published_object_is_read_without_unknown_fields() -> None:
    """And the claims, slices and classes among them are valid."""
    if not EXAMPLES.is_dir():
        pytest.skip("no examples: set MOORINGS_DRA_DATA to a folder of manifests")
    kinds = set()
    for path, raw in objects():
        try:
            decoded = decode_object(raw)
        except UnknownKindError as error:
            assert error.kind in UNREADABLE, (path, error)  # noqa: PT017 # either outcome is fine
            continue
        assert decoded.unknown == (), (path, decoded.unknown)
        kinds.add(decoded.kind)
        match decoded.value:
            case ResourceClaim(status=None) as claim:
                assert validate(default_claim(claim)) == (), path
            case ResourceClaimTemplate() as template:
                assert validate(default_template(template)) == (), path
            case ResourceSlice() | DeviceClass() | DeviceTaintRule() as value:
                assert validate(value) == (), path
            case _:
                pass
    assert {"ResourceClaim", "ResourceSlice", "DeviceClass", "Pod", "MPIJob"} <= kinds
