"""The CustomResourceDefinition says what contracts/gang.py says, name by name."""

from __future__ import annotations

from typing import Any

import yaml
from msgspec.inspect import (
    CustomType,
    DictType,
    Field,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from contracts.claim import DeviceClaim, ResourceClaimSpec
from contracts.gang import GangSpec
from contracts.gang_rules import EVEN
from contracts.meta import ObjectMeta
from contracts.names import API_VERSION
from contracts.validate.gang_rules import MODES, SCOPES
from contracts.validate.gangs import FAILURE, MOST_FAILURES, RECOVERIES
from tests.lab.manifests import CRD

OPAQUE = (ResourceClaimSpec, DeviceClaim, ObjectMeta)
"""Kept as written: the API server adds fields with each release."""


def _definition() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(CRD.read_text())
    return found


def _differences(struct: StructType, schema: dict[str, Any], path: str) -> list[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return [] if struct.cls in OPAQUE else [f"{path}: not opaque"]
    fields = {field.encode_name: field for field in struct.fields}
    found = [f"{path}: {name}" for name in fields.keys() ^ schema["properties"].keys()]
    for name in fields.keys() & schema["properties"].keys():
        part = schema["properties"][name]
        found += _field_differences(fields[name], part, f"{path}.{name}")
    return found


def _field_differences(field: Field, schema: dict[str, Any], path: str) -> list[str]:
    default = field.default if isinstance(field.default, int | str) else None
    said = schema.get("default")
    if (default or None) != (said or None):
        return [f"{path}: default {default!r}, not {said!r}"]
    return _type_differences(field.type, schema, path)


def _type_differences(kind: Type, schema: dict[str, Any], path: str) -> list[str]:
    match kind:
        case StructType():
            return _differences(kind, schema, path)
        case UnionType(types=types):
            inner = [item for item in types if isinstance(item, StructType)]
            return _differences(inner[0], schema, path) if inner else []
        case VarTupleType(item_type=item):
            return _type_differences(item, schema["items"], path)
        case DictType(value_type=CustomType()):
            number = schema["additionalProperties"]["x-kubernetes-int-or-string"]
            return [] if number else [f"{path}: no quantities"]
        case _:
            return []


def test_fields_and_defaults_are_those_of_the_contract() -> None:
    """No field of a Gang is lost on its way through the API server, none invented."""
    schema = _definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = type_info(GangSpec)
    assert isinstance(spec, StructType)

    assert _differences(spec, schema["properties"]["spec"], "spec") == []


def test_group_version_and_closed_sets_are_those_of_the_contract() -> None:
    """The schema allows what we can read."""
    definition = _definition()["spec"]
    version = definition["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]

    assert f"{definition['group']}/{version['name']}" == API_VERSION
    assert tuple(spec["recovery"]["enum"]) == RECOVERIES
    listed = spec["onDeviceFailure"]
    assert listed["maxItems"] == MOST_FAILURES
    pattern, most = listed["items"]["pattern"], listed["items"]["maxLength"]
    assert FAILURE.pattern == f"{pattern.strip('^$*')}{{0,{most - 1}}}"
    assert tuple(spec["constraints"]["items"]["properties"]["scope"]["enum"]) == SCOPES
    topology = spec["topology"]["items"]["properties"]
    assert tuple(topology["mode"]["enum"]) == MODES
    assert topology["groupSize"]["pattern"] == f"^{EVEN}$"
