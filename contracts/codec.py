"""Bytes <-> Structs: one encoder and one decoder a type, built once.

The bytes are canonical (keys sorted, defaults left out), so equal values have equal
bytes and hashes. Knows nothing of subjects or streams.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from contracts.errors import DecodeError
from contracts.quantity import Quantity, QuantityError

T = TypeVar("T")


def _from_wire(kind: type, value: Any) -> Any:
    if kind is Quantity:
        if isinstance(value, str):
            return Quantity.parse(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return Quantity.parse(str(value))
        if isinstance(value, float):
            return Quantity.parse(repr(value))
        raise QuantityError(str(value))
    raise NotImplementedError(kind.__name__)


# Quantities are all that the encoder does not know by itself. There are millions in a
# large cluster, so no function of Python stands in between.
_ENCODER = msgspec.json.Encoder(enc_hook=attrgetter("text"), order="deterministic")


def encode(value: Any) -> bytes:
    """Write canonical JSON."""
    return _ENCODER.encode(value)


def to_builtins(value: Any) -> Any:
    """Turn Structs into dicts and lists, as JSON or YAML writers want them."""
    return msgspec.json.decode(_ENCODER.encode(value))


def convert(value: Any, kind: type[T], what: str) -> T:
    """Read a Struct from dicts and lists; `what` names the object in errors.

    Raises:
        DecodeError: the value is not of that type.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_from_wire)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        # YAML has texts with half a character, and is as deep as its author likes.
        raise _to_decode_error(what, error) from error


class Codec(Generic[T]):
    """Bytes <-> values of one type (or tagged union)."""

    def __init__(self, kind: Any, what: str) -> None:
        self._what = what
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(
            kind, dec_hook=_from_wire
        )

    @property
    def kind(self) -> Any:
        """The type, or the union of types, that is read."""
        return self._decoder.type

    def encode(self, value: T) -> bytes:
        """Write canonical JSON."""
        return _ENCODER.encode(value)

    def decode(self, data: bytes) -> T:
        """Read a value.

        Raises:
            DecodeError: the bytes are no JSON, or not of this type.
        """
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _to_decode_error(self._what, error) from error


def _to_decode_error(what: str, error: Exception) -> DecodeError:
    reason, separator, path = str(error).rpartition(" - at `")
    if not separator:
        return DecodeError(what, "$", str(error))
    path = path.rstrip("`")
    if path.startswith("key` in `"):
        return DecodeError(what, path.removeprefix("key` in `"), f"key: {reason}")
    return DecodeError(what, path, reason)
