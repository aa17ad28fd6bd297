"""JSON that a type takes, or nearly: every field of it, with values as they occur.

`sample(kind, draw)` fills in what a type has, so that a test may break one thing in
what is otherwise right. Where a type asks for more than its fields tell, the sample may
be refused.
"""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import inspect

Json = Any
UID = "00000000-0000-4000-8000-000000000bad"
_DEPTH = 9
"""Levels below which optional fields are left out."""
_WORDS: dict[str, tuple[str, ...]] = {
    "uid": (UID,),
    "namespace": ("team",),
    "cluster": ("local",),
    "node": ("node-1",),
    "nodeName": ("node-1",),
    "driver": ("gpu.example.com",),
    "deviceClassName": ("gpu.example.com",),
    "operator": ("In", "Exists", "NotIn"),
    "effect": ("NoSchedule", "NoExecute"),
    "expression": ("device.driver == 'gpu.example.com'", "true"),
    "since": ("2026-01-01T00:00:00Z",),
    "version": ("1.2.3",),
    "problem": ("a" * 64,),
}
_TEXTS = ("a", "gpu-0", "example.com/a", "default", "2026-01-01T00:00:00Z", "1.2.3")
_AMOUNTS = ("1", "80Gi", "500m", 4)


def sample(kind: Any, draw: Random, /, **fixed: Json) -> Json:
    """Draw what a type (or union) takes; fields named in `fixed` are as given."""
    found = _draw(inspect.type_info(kind), draw, "", 0)
    if isinstance(found, dict):
        found |= {name: value for name, value in fixed.items() if name in found}
    return found


def _draw(info: inspect.Type, draw: Random, name: str, depth: int) -> Json:
    match info:
        case inspect.StructType():
            return _struct(info, draw, depth)
        case inspect.UnionType():
            return _draw(draw.choice(info.types), draw, name, depth)
        case inspect.VarTupleType() | inspect.ListType():
            count = max(info.min_length or 0, draw.choice((0, 1, 1, 2)))
            return [_draw(info.item_type, draw, name, depth + 1) for _ in range(count)]
        case inspect.DictType():
            keys = range(draw.choice((0, 1, 2)))
            value = info.value_type
            return {
                str(_draw(info.key_type, draw, f"key-{key}", depth)): _draw(
                    value, draw, name, depth + 1
                )
                for key in keys
            }
        case inspect.LiteralType():
            return draw.choice(info.values)
        case inspect.EnumType():
            return draw.choice([member.value for member in info.cls])
        case inspect.CustomType():
            return draw.choice(_AMOUNTS)
        case inspect.AnyType() | inspect.RawType():
            return draw.choice(({}, {"a": "b"}, "a", 1, None, [1]))
        case _:
            return _scalar(info, draw, name)


def _scalar(info: inspect.Type, draw: Random, name: str) -> Json:
    match info:
        case inspect.IntType():
            return max(info.ge or 0, draw.choice((0, 1, 2)))
        case inspect.FloatType():
            return draw.choice((0.0, 1.5))
        case inspect.BoolType():
            return draw.random() < 0.5
        case inspect.StrType():
            text = draw.choice(_WORDS.get(name, _TEXTS))
            return text.ljust(info.min_length or 0, "x")
        case inspect.NoneType():
            return None
        case _:
            raise NotImplementedError(info)


def _struct(info: inspect.StructType, draw: Random, depth: int) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if info.tag is not None:
        found[str(info.tag_field)] = info.tag
    for field in info.fields:
        wanted = draw.random() < (0.6 if depth < _DEPTH else 0.0)
        if field.required or wanted:
            name = field.encode_name
            found[name] = _draw(field.type, draw, name, depth + 1)
    return found


def sample_object(
    kind: Any, api_version: str, draw: Random, name: str = "bad"
) -> dict[str, Json]:
    """Draw an object of Kubernetes as its API server would hold it."""
    found = sample(kind, draw)
    metadata = {**found.get("metadata", {}), "name": name, "namespace": "evil"}
    metadata |= {"uid": UID, "resourceVersion": "7"}
    header = {"apiVersion": api_version, "kind": kind.__name__, "metadata": metadata}
    return {**found, **header}
