"""What is read at once is what is read step by step."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.kubernetes import exact
from contracts.kubernetes.decode import TYPES, V1, V1BETA1, Decoded, decode_object
from contracts.kubernetes.exact import ExactDecoder
from tests.builders.inputs import written_node, written_pod

ROOT = Path(__file__).parents[4]
DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "a100"}, "index": {"int": 0}},
    "capacity": {
        "memory": {
            "value": "80Gi",
            "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}},
        }
    },
    "taints": [{"key": "example.com/hot", "effect": "NoSchedule"}],
    "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": 1}}}],
    "nodeName": "node-1",
    "bindsToNode": False,
}
TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
SLICE = {
    "apiVersion": V1,
    "kind": "ResourceSlice",
    "metadata": {"name": "slice-1", "labels": {"a": "b"}, "managedFields": [{}]},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "node-1", "generation": 3, "resourceSliceCount": 1},
        "nodeSelector": {"nodeSelectorTerms": [TERM]},
        "allNodes": False,
        "devices": [DEVICE, {"name": "gpu-1"}],
        "sharedCounters": [{"name": "c", "counters": {"m": {"value": "8"}}}],
    },
}
RESULT = {"request": "gpu", "driver": "d", "pool": "p", "device": "gpu-0"}
CLAIM = {
    "apiVersion": V1,
    "kind": "ResourceClaim",
    "metadata": {"name": "claim-1", "namespace": "team-a", "uid": "u"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu.example.com",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "count": 2,
                        "capacity": {"requests": {"memory": "10Gi"}},
                    },
                }
            ],
            "constraints": [{"requests": ["gpu"], "matchAttribute": "example.com/a"}],
            "config": [{"opaque": {"driver": "d", "parameters": {"a": [1, None]}}}],
        }
    },
    "status": {
        "allocation": {"devices": {"results": [{**RESULT, "shareID": "s"}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [{"driver": "d"}],
    },
}


def documents(path: str) -> list[Any]:
    return list(yaml.safe_load_all((ROOT / path).read_text()))


OBJECTS = [
    SLICE,
    {**SLICE, "apiVersion": V1BETA1},
    CLAIM,
    *documents("docs/gangs/elastic.yaml"),
    documents("docs/examples/gpu-nic-workers.yaml")[0],
    documents("tests/data/third-party-classes.yaml")[0],
    written_node("node-1"),
    written_pod("pod-1"),
]
WRONG: tuple[Any, ...] = (
    None,
    1.0,
    2.5,
    -1,
    10**30,
    True,
    "text",
    "",
    [],
    {},
    [None],
    {"a": None},
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Go through the places of all values in an object."""
    if path:
        yield path
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in pairs:
            yield from paths_of(child, (*path, key))


def changed(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Copy an object, and put a value at a place of it."""
    copied = copy.deepcopy(raw)
    parent = copied
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return copied


def slowly(raw: Any) -> Decoded | Exception:
    try:
        return decode_object(raw)
    except ValueError as error:
        return error


DECODER = ExactDecoder()


def exactly(raw: Any, inherited: dict[str, str] | None = None) -> Decoded | None:
    data = json.dumps(raw).encode()
    found = DECODER.decode(data, inherited or {})
    assert DECODER.decode(data, inherited or {}) == found, "whatever came before"
    return found


@pytest.mark.parametrize("raw", OBJECTS, ids=range(len(OBJECTS)))
def test_nothing_that_is_wrong_or_unknown_is_read_otherwise(raw: Any) -> None:
    """Whatever stands at whatever place: it is read as step by step, or not at all."""
    changes = [changed(raw, path, value) for path in paths_of(raw) for value in WRONG]
    places = [path for path in ((), *paths_of(raw)) if isinstance(at(raw, path), dict)]
    changes += [changed(raw, (*path, "other"), {"a": 1}) for path in places]
    read = 0
    for each in changes:
        found = exactly(each)
        if found is not None:
            read += 1
            assert found == slowly(each), each
    assert read < len(changes) / 2
    assert read or exactly(raw) is None


def at(raw: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        raw = raw[key]
    return raw


def test_each_kind_but_of_another_shape_is_read_at_once() -> None:
    """So this is no slower way to say that nothing was read."""
    assert exactly(SLICE) == decode_object(SLICE)
    assert exactly(CLAIM) == decode_object(CLAIM)
    assert exactly(written_pod("pod-1")) == decode_object(written_pod("pod-1"))
    assert exactly({**SLICE, "apiVersion": V1BETA1}) is None
    for kind in TYPES.values():
        exact._read_as(kind)


def test_unknown_fields_are_left_to_who_names_them() -> None:
    """However deep they are; a field that 1.36 had is unknown as well."""
    device = {**DEVICE, "nodeAllocatableResourceMappings": {}}
    for path, value in ((("spec", "devices", 0), device), (("spec", "colour"), "red")):
        assert exactly(changed(SLICE, path, value)) is None


def test_items_of_a_list_have_its_kind_unless_they_say_another() -> None:
    """As the API server leaves them out."""
    bare = {key: CLAIM[key] for key in ("metadata", "spec", "status")}
    of_list = {"apiVersion": V1, "kind": "ResourceClaim"}
    assert exactly(bare, of_list) == decode_object(CLAIM)
    assert exactly(SLICE, of_list) == decode_object(SLICE)
    assert exactly(bare) is None
    for key in of_list:
        assert exactly({**CLAIM, key: ""}, of_list) is None, "it says so itself"


def test_one_kind_after_another() -> None:
    """The kind of the last object is a guess, and no more."""
    decoder, template = ExactDecoder(), documents("docs/gangs/elastic.yaml")[1]
    for raw in (CLAIM, SLICE, CLAIM, template, SLICE):
        found = decoder.decode(json.dumps(raw).encode(), {})
        assert found == decode_object(raw)
    for data in (b"1", b"[]", b"{", b'{"kind": 1}', b"[" * 100_000):
        assert decoder.decode(data, {}) is None
