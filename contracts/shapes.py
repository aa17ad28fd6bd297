"""Reads an object as a Struct the way Go does: nulls are absent, extras are named.

The fields are taken from the Struct types themselves, once a type; an object without
surprises costs one set comparison for each of its maps. Knows no kind of object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import inspect

from contracts.codec import convert
from contracts.errors import DecodeError
from contracts.quantity import Quantity
from contracts.structs import KubernetesExcerpt

T = TypeVar("T")
Walk = Callable[[Any, list[str]], Any]
"""(value, unknown) -> value without nulls; appends paths of unknown fields."""


def read(
    raw: Mapping[str, Any],
    kind: type[T],
    what: str,
    unknown: list[str],
    *,
    ignored: frozenset[str] = frozenset(),
) -> T:
    """Read a Struct; append the paths of fields that it does not have to `unknown`.

    `what` names the object in errors; `ignored` are top fields not worth naming.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    struct: Any = kind
    walk = _walk_of(struct)
    paths: list[str] = []
    value = raw if walk is None else walk(raw, paths)
    unknown.extend(path for path in paths if path not in ignored)
    try:
        return convert(value, kind, what)
    except DecodeError as error:
        path = _find_exact_path(value, kind, error.field)
        raise DecodeError(what, path, error.reason) from error


@lru_cache(maxsize=1024)
def _walk_of(kind: Hashable) -> Walk | None:
    return _walk_of_type(inspect.type_info(kind))


def _walk_of_type(info: inspect.Type) -> Walk | None:
    match info:
        case inspect.StructType():
            return _walk_of_struct(info)
        case inspect.VarTupleType():
            return _walk_of_list(_walk_of_type(info.item_type))
        case inspect.DictType():
            return _walk_of_map(
                _walk_of_type(info.value_type), _zero_of(info.value_type)
            )
        case inspect.UnionType():
            walks = [_walk_of_type(member) for member in info.types]
            return next((walk for walk in walks if walk is not None), None)
        case _:
            return None


def _walk_of_struct(info: inspect.StructType) -> Walk:
    fields = frozenset(field.encode_name for field in info.fields)
    is_excerpt = issubclass(info.cls, KubernetesExcerpt)
    walks = [(field.encode_name, _walk_of_type(field.type)) for field in info.fields]
    nested = tuple((name, walk) for name, walk in walks if walk is not None)

    def walk_struct(value: Any, unknown: list[str]) -> Any:
        if not isinstance(value, dict):
            return value
        if not is_excerpt and not value.keys() <= fields:
            unknown.extend(str(key) for key in value if key not in fields)
        if None in value.values():
            value = {key: child for key, child in value.items() if child is not None}
        changed: dict[str, Any] = {}
        for name, walk in nested:
            if name in value:
                before = value[name]
                mark = len(unknown)
                after = walk(before, unknown)
                if len(unknown) > mark:
                    unknown[mark:] = [
                        _join_paths(name, path) for path in unknown[mark:]
                    ]
                if after is not before:
                    changed[name] = after
        return {**value, **changed} if changed else value

    return walk_struct


def _walk_of_list(walk: Walk | None) -> Walk | None:
    if walk is None:
        return None

    def walk_list(value: Any, unknown: list[str]) -> Any:
        if not isinstance(value, list | tuple):
            return value
        items = []
        changed = False
        for index, before in enumerate(value):
            mark = len(unknown)
            after = walk(before, unknown)
            if len(unknown) > mark:
                prefix = f"[{index}]"
                unknown[mark:] = [_join_paths(prefix, path) for path in unknown[mark:]]
            changed = changed or after is not before
            items.append(after)
        return items if changed else value

    return walk_list


def _walk_of_map(walk: Walk | None, zero: Any) -> Walk | None:
    """`zero` is what Go reads a null value as; None where it has no such value."""
    if walk is None and zero is None:
        return None

    def walk_map(value: Any, unknown: list[str]) -> Any:
        if not isinstance(value, dict):
            return value
        if zero is not None and None in value.values():
            value = {
                key: zero if child is None else child for key, child in value.items()
            }
        if walk is None:
            return value
        changed: dict[str, Any] = {}
        for key, before in value.items():
            mark = len(unknown)
            after = walk(before, unknown)
            if len(unknown) > mark:
                unknown[mark:] = [
                    _join_paths(f"[{key}]", path) for path in unknown[mark:]
                ]
            if after is not before:
                changed[key] = after
        return {**value, **changed} if changed else value

    return walk_map


def _zero_of(info: inspect.Type) -> Any:
    match info:
        case inspect.StrType():
            return ""
        case inspect.StructType():
            return {}
        case inspect.CustomType() if info.cls is Quantity:
            return "0"
        case _:
            return None


def _join_paths(head: str, tail: str) -> str:
    return head + tail if tail.startswith("[") else f"{head}.{tail}"


def _find_exact_path(value: Any, kind: Any, path: str) -> str:
    """Name the keys that msgspec shows as `[...]`.

    Looks for the first entry that does not decode, so its cost is one more decoding.
    """
    head, separator, _ = path.partition("[...]")
    if not separator:
        return path
    entries, info = _follow_path(value, inspect.type_info(kind), head)
    if not isinstance(entries, dict) or not isinstance(info, inspect.DictType):
        return path
    for key, entry in entries.items():
        error = _try_entry({key: entry}, info)
        if error is None:
            continue
        # This entry does not decode: its own path may have such keys in it again.
        tail = error.field.removeprefix("$[...]")
        inner = _find_exact_path(entry, _type_of(info.value_type), f"${tail}")
        return f"{head}[{key}]{inner.removeprefix('$')}"
    return path


def _follow_path(value: Any, info: inspect.Type, path: str) -> tuple[Any, inspect.Type]:
    """Follow a path of field names and indices, without maps."""
    steps = path.removeprefix("$").replace("[", ".[").split(".")
    for step in filter(None, steps):
        info = _without_none(info)
        if step.startswith("["):
            if not isinstance(info, inspect.VarTupleType):
                break
            value, info = value[int(step[1:-1])], info.item_type
        else:
            if not isinstance(info, inspect.StructType):
                break
            types = {field.encode_name: field.type for field in info.fields}
            value, info = value[step], types[step]
    return value, _without_none(info)


def _without_none(info: inspect.Type) -> inspect.Type:
    if isinstance(info, inspect.UnionType):
        return next(
            member for member in info.types if not isinstance(member, inspect.NoneType)
        )
    return info


def _try_entry(entry: dict[Any, Any], info: inspect.DictType) -> DecodeError | None:
    maps: Any = dict
    try:
        convert(entry, maps[str, _type_of(info.value_type)], "entry")
    except DecodeError as error:
        return error
    return None


def _type_of(info: inspect.Type) -> Any:
    match info:
        case inspect.StructType() | inspect.CustomType():
            return info.cls
        case inspect.StrType():
            return str
        case _:
            return Any
