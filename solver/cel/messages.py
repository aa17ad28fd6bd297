"""Kubernetes' own CEL types as protobuf messages, and how functions are declared.

The engine carries no opaque values; a message with one text is the next best thing. It
compares messages by their field, so the text must be the same for equal values. It
calls Python functions by the kind of their arguments only: all messages are one kind,
so overloads that differ in the message alone share one `impl`, given once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from cel_expr_python import cel
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
)

_STRING, _OPTIONAL = 9, 1
_TYPES = {
    "kubernetes": ("Quantity", "Semver", "URL", "NamedFormat"),
    "net": ("IP", "CIDR"),
}
POOL = descriptor_pool.DescriptorPool()


def _messages() -> dict[str, Any]:
    for package, names in _TYPES.items():
        file = descriptor_pb2.FileDescriptorProto(
            name=f"moorings_{package}.proto", package=package, syntax="proto3"
        )
        for name in names:
            message = file.message_type.add(name=name)
            message.field.add(name="value", number=1, type=_STRING, label=_OPTIONAL)
        POOL.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(
            POOL.FindMessageTypeByName(f"{package}.{name}")
        )
        for package, names in _TYPES.items()
        for name in names
    }


_CLASSES = _messages()
QUANTITY, SEMVER = _CLASSES["Quantity"], _CLASSES["Semver"]
URL, NAMED_FORMAT = _CLASSES["URL"], _CLASSES["NamedFormat"]
IP, CIDR = _CLASSES["IP"], _CLASSES["CIDR"]
BOOL, INT, DOUBLE = cel.Type.BOOL, cel.Type.INT, cel.Type.DOUBLE
STRING, DYN = cel.Type.STRING, cel.Type.DYN
SCALARS = {
    "int": INT,
    "uint": cel.Type.UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "string": STRING,
    "bytes": cel.Type.BYTES,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
}
QUANTITY_TYPE = cel.Type("kubernetes.Quantity")
SEMVER_TYPE = cel.Type("kubernetes.Semver")
URL_TYPE = cel.Type("kubernetes.URL")
NAMED_FORMAT_TYPE = cel.Type("kubernetes.NamedFormat")
IP_TYPE = cel.Type("net.IP")
CIDR_TYPE = cel.Type("net.CIDR")


class InputError(ValueError):
    """An argument that a function refuses; its text ends up in the verdict."""


def text_of(value: Any, kind: Any) -> str:
    """Read a message that must be of a kind.

    Raises:
        InputError: it is another.
    """
    if not isinstance(value, kind):
        raise InputError("no such overload")
    text: str = value.value
    return text


def give(value: Any) -> Any:
    """Make a value that was handed over one that may be given back.

    Of durations and timestamps the engine takes messages alone, and to the microsecond.
    """
    match value:
        case timedelta():
            duration = duration_pb2.Duration()
            duration.FromTimedelta(value)
            return duration
        case datetime():
            timestamp = timestamp_pb2.Timestamp()
            timestamp.FromDatetime(value)
            return timestamp
        case bytearray():
            return bytes(value)
        case list():
            return [give(element) for element in value]
        case dict():
            return {key: give(element) for key, element in value.items()}
        case _:
            return value


def function(name: str, *overloads: Any) -> Any:
    """Declare a function by its overloads."""
    return cel.FunctionDecl(name, list(overloads))


def method(
    name: str, result: Any, *parameters: Any, impl: Callable[..., Any] | None = None
) -> Any:
    """Declare an overload called on its first parameter."""
    return _overload(name, result, parameters, impl, is_member=True)


def call(
    name: str, result: Any, *parameters: Any, impl: Callable[..., Any] | None = None
) -> Any:
    """Declare an overload called as a function."""
    return _overload(name, result, parameters, impl, is_member=False)


def _overload(
    name: str,
    result: Any,
    parameters: tuple[Any, ...],
    impl: Callable[..., Any] | None,
    *,
    is_member: bool,
) -> Any:
    more = {} if impl is None else {"impl": impl}
    return cel.Overload(
        name,
        return_type=result,
        parameters=list(parameters),
        is_member=is_member,
        **more,
    )
