"""Messages that can be read and mean harm, drawn from the types themselves.

`bodies(kind, ...)` draws the JSON of messages that belong to one subject, each of their
fields of its type, and as extreme as the type allows or a little more: numbers at and
beyond their ends, long texts, no items or many, items twice, deep nesting. `objects`
does the same for what an API server holds.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

from contracts import messages

NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 100, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 10**400]
)
FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300])
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "gpu-0",
        "node-1",
        "default",
        "gpu.example.com",
        "example.com/a",
        "a/b/c",
        "*",
        ">",
        "..",
        "\0",
        "\u202e",
        "é" * 300,
        "x" * 20_000,
        "9" * 5_000,
        "1.0.0",
        "9" * 5_000 + ".0.0",
        "1e5000",
        "80Gi",
        "-1",
        "In",
        "Exists",
        "NoSchedule",
        "ExactCount",
        "All",
        "true",
        "device.driver == 'x'",
        "[0].map(x, x)",
    ]
)
AMOUNTS = st.sampled_from(
    ["0", "1", "-1", "1e5000", "1e-5000", "9" * 250, "9" * 5_000, "80Gi", "", "1E"]
)
DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = {"a": [DEEP]}
MANY = 40


def bodies(kind: Any, **address: str) -> SearchStrategy[Any]:
    """Draw what a message of a type (or union) says, about these names."""
    info = inspect.type_info(kind)
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    return st.one_of([_of(each) for each in kinds]).map(
        lambda said: _addressed(said, address)
    )


def objects(kind: Any, name: str, api_version: str) -> SearchStrategy[Any]:
    """Draw an object of Kubernetes of that type and name."""
    header = {"apiVersion": api_version, "kind": kind.__name__}

    def named(said: dict[str, Any]) -> dict[str, Any]:
        metadata = {**said.get("metadata", {}), "name": name, "namespace": "evil"}
        return {**said, **header, "metadata": metadata}

    return _of(inspect.type_info(kind)).map(named)


def _addressed(said: dict[str, Any], address: dict[str, str]) -> dict[str, Any]:
    """Let a message belong to its subject: others are refused unread."""
    said = {**said, **{name: v for name, v in address.items() if name in said}}
    if said.get("type") == messages.SubmitGang.__name__ and "gang" in said:
        said["uid"] = address["uid"]
        gang = dict(said["gang"])
        gang["metadata"] = {
            **gang.get("metadata", {}),
            "namespace": address["namespace"],
        }
        said["gang"] = gang
    return said


def _of(info: inspect.Type) -> SearchStrategy[Any]:
    match info:
        case inspect.StructType():
            return _struct(info)
        case inspect.VarTupleType():
            return _lists(_of(info.item_type))
        case inspect.DictType():
            return st.dictionaries(TEXTS, _of(info.value_type), max_size=3)
        case inspect.UnionType():
            return st.one_of([_of(member) for member in info.types])
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.EnumType():
            return st.sampled_from([member.value for member in info.cls])
        case inspect.CustomType():
            return AMOUNTS
        case inspect.IntType():
            return NUMBERS
        case inspect.FloatType():
            return FLOATS
        case inspect.BoolType():
            return st.booleans()
        case inspect.StrType():
            return TEXTS
        case inspect.NoneType():
            return st.none()
        case inspect.AnyType():
            return st.one_of(
                st.just(DEEP),
                TEXTS,
                NUMBERS,
                st.none(),
                st.dictionaries(TEXTS, TEXTS, max_size=3),
            )
        case _:
            raise NotImplementedError(info)


def _struct(info: inspect.StructType) -> SearchStrategy[Any]:
    required = {f.encode_name: _of(f.type) for f in info.fields if f.required}
    optional = {f.encode_name: _of(f.type) for f in info.fields if not f.required}
    tagged = {} if info.tag is None else {str(info.tag_field): info.tag}
    return st.fixed_dictionaries(required, optional=optional).map(
        lambda fields: {**tagged, **fields}
    )


def _lists(items: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    """Draw no items, some, or one of them many times."""
    few = st.lists(items, max_size=2)
    return few | items.map(lambda item: [item] * MANY)
