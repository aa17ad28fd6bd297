"""JSON of an object -> its Struct at once, where nothing in it is unknown.

`decode.py` goes through parsed JSON, to name every field that is unknown and to read
nulls as Go does. Most objects of a large cluster have neither. So their text is looked
at by a twin of the Struct, which has the same fields, takes no others and reads no
values, and only then read. Whatever the twin does not take is left to `decode.py`, so
that both say the same of all that is kept of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, inspect

from contracts.codec import Codec
from contracts.errors import DecodeError
from contracts.kubernetes.decode import TYPES, V1BETA1, Decoded
from contracts.structs import KubernetesExcerpt

_KIND = ("apiVersion", "kind")


class _TypeMeta(Struct, rename="camel"):
    """The version and kind of an object, apimachinery's TypeMeta."""

    api_version: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET


class _Reading(Struct, frozen=True):
    """How objects of one kind are read."""

    twin: msgspec.json.Decoder[Any]
    values: Codec[Any]


class ExactDecoder:
    """Reads objects, guessing the kind of each by what came before."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, str], _Reading] = {}
        self._followers: dict[tuple[str, str], tuple[str, str]] = {}
        """The kind that came last after each: lists are sorted, or have a pattern."""
        self._last = ("", "")

    def decode(self, data: Raw | bytes, inherited: Mapping[str, str]) -> Decoded | None:
        """Read an object; None: `decode_object` is to say what it is, or what is wrong.

        `inherited`: `apiVersion` and `kind` as the list says that it comes from.
        """
        guess = self._followers.get(self._last)
        if guess is not None:
            decoded = self._decode_as(guess, data, inherited)
            if decoded is not None:
                self._last = guess
                return decoded
        try:
            header = msgspec.json.decode(data, type=_TypeMeta)
        except (msgspec.DecodeError, RecursionError):
            return None
        kind = _kind_of(header.api_version, header.kind, inherited)
        # Objects of v1beta1 are not of the shape of their Struct.
        if kind not in TYPES or kind[0] == V1BETA1 or kind == guess:
            return None
        self._followers[self._last] = kind
        self._last = kind
        return self._decode_as(kind, data, inherited)

    def _decode_as(
        self, kind: tuple[str, str], data: Raw | bytes, inherited: Mapping[str, str]
    ) -> Decoded | None:
        reading = self._readings.get(kind)
        if reading is None:
            reading = self._readings[kind] = _read_as(TYPES[kind])
        try:
            twin = reading.twin.decode(data)
            if _kind_of(twin.apiVersion, twin.kind, inherited) != kind:
                return None
            return Decoded(kind=kind[1], value=reading.values.decode(data))
        except (msgspec.DecodeError, DecodeError, RecursionError):
            return None


def _kind_of(
    api_version: str | UnsetType, kind: str | UnsetType, inherited: Mapping[str, str]
) -> tuple[str, str]:
    """Return version and kind of an object; one that is "" inherits nothing."""
    return (
        inherited.get("apiVersion", "") if api_version is UNSET else api_version,
        inherited.get("kind", "") if kind is UNSET else kind,
    )


def _read_as(kind: Any) -> _Reading:
    twin = _twin_of_struct(inspect.type_info(kind), is_object=True)
    return _Reading(msgspec.json.Decoder(twin), Codec(kind, kind.__name__))


def _twin_of_struct(info: Any, *, is_object: bool = False) -> Any:
    """Make the twin of a Struct; `is_object`: it is a whole object.

    Raises:
        TypeError: null means another value than the default to a field.
    """
    fields: list[Any] = []
    if is_object:
        text = str | UnsetType
        fields = [(name, text, UNSET) for name in _KIND]
        fields.append(("status", Raw, Raw()))
    for field in info.fields:
        if _takes_null(field.type) and (field.required or field.default is not None):
            raise TypeError(f"{info.cls.__name__}.{field.name} may be null")
        twin = _twin_of(field.type) or Raw
        default = () if field.required else (Raw(),)
        if not (is_object and field.encode_name in _KIND):
            fields.append((field.encode_name, twin, *default))
    # What every object has is known, also where its Struct does not have it.
    unique = {name: (name, *rest) for name, *rest in fields}
    return msgspec.defstruct(
        f"Exact{info.cls.__name__}",
        unique.values(),
        kw_only=True,
        forbid_unknown_fields=not issubclass(info.cls, KubernetesExcerpt),
        gc=False,
    )


def _twin_of(info: inspect.Type) -> Any:
    """Make the twin of a type; None: there is no Struct in it."""
    match info:
        case inspect.StructType():
            return _twin_of_struct(info)
        case inspect.VarTupleType():
            item: Any = _twin_of(info.item_type)
            return None if item is None else list[item]
        case inspect.DictType():
            value: Any = _twin_of(info.value_type)
            return None if value is None else dict[str, value]
        case inspect.UnionType():
            twins = [_twin_of(member) for member in info.types]
            found = next((twin for twin in twins if twin is not None), None)
            return None if found is None else found | None
        case _:
            return None


def _takes_null(info: inspect.Type) -> bool:
    if isinstance(info, inspect.UnionType):
        return any(isinstance(member, inspect.NoneType) for member in info.types)
    return False
