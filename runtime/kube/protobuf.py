"""More in a claim as protobuf, every other byte of it as it was.

A ResourceClaim holds parameters of drivers as its author wrote them: spaces, order of
keys. The API server compares them byte by byte, but an object that comes or is patched
as JSON has lost both, so no JSON can change such a claim: `spec: field is immutable`,
nor one that kube-scheduler allocated so: `status.allocation: ...`.
Of protobuf nothing need be known but the numbers of a few fields: a message that
follows another of the same field is merged into it.

Source: k8s.io/apimachinery, runtime/serializer/protobuf, meta/v1/generated.proto;
k8s.io/api, resource/v1/generated.proto (numbers as in v1beta1 and v1beta2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_RAW = 2
"""Of the envelope: the object."""
_METADATA, _STATUS = 1, 3
_RESERVED_FOR = 2
_CONSUMER = {"apiGroup": 1, "resource": 3, "name": 4, "uid": 5}
_UID, _RESOURCE_VERSION, _ANNOTATIONS, _FINALIZERS = 5, 6, 12, 14
_KEY, _VALUE = 1, 2
_MORE = 0x80


def extend(body: bytes, patch: Mapping[str, Any]) -> bytes:
    """Return a claim with what a patch adds to it, and nothing of what it changes.

    Added are `annotations` and `finalizers`, and in the status `reservedFor`. `uid` and
    `resourceVersion` replace the claim's own, so that they are preconditions of an
    update. What else is in the patch is ignored.

    Raises:
        ValueError: `body` is no object of Kubernetes as protobuf.
    """
    if not body.startswith(_MAGIC):
        raise ValueError("no protobuf of Kubernetes")
    changed = [_MAGIC]
    for number, field, content in _list_fields(body[len(_MAGIC) :]):
        if number == _RAW:
            more = _encode_metadata(content, patch.get("metadata") or {})
            more += _encode_status(content, patch.get("status") or {})
            field = _encode_message(_RAW, content + more)  # noqa: PLW2901 # just this one field differs
        changed.append(field)
    return b"".join(changed)


def _encode_metadata(raw: bytes, metadata: Mapping[str, Any]) -> bytes:
    """Return the metadata that follows the object's own."""
    present = {
        name.decode() for name in _list_inner_fields(raw, _METADATA, _FINALIZERS)
    }
    new: Sequence[str] = metadata.get("finalizers", ())
    parts = [
        _encode_message(_FINALIZERS, name.encode())
        for name in new
        if name not in present
    ]
    annotations: Mapping[str, str] = metadata.get("annotations", {})
    for key, value in annotations.items():
        entry = _encode_message(_KEY, key.encode()) + _encode_message(
            _VALUE, value.encode()
        )
        parts.append(_encode_message(_ANNOTATIONS, entry))
    for number, name in ((_UID, "uid"), (_RESOURCE_VERSION, "resourceVersion")):
        if metadata.get(name):
            parts.append(_encode_message(number, metadata[name].encode()))
    return _encode_message(_METADATA, b"".join(parts))


def _encode_status(raw: bytes, status: Mapping[str, Any]) -> bytes:
    """Return the status that follows the claim's own; empty: there is none."""
    present = {
        content.decode()
        for user in _list_inner_fields(raw, _STATUS, _RESERVED_FOR)
        for number, _, content in _list_fields(user)
        if number == _CONSUMER["uid"]
    }
    users = [
        b"".join(
            _encode_message(number, user[name].encode())
            for name, number in _CONSUMER.items()
            if user.get(name)
        )
        for user in status.get("reservedFor", ())
        if user["uid"] not in present
    ]
    parts = (_encode_message(_RESERVED_FOR, user) for user in users)
    return _encode_message(_STATUS, b"".join(parts)) if users else b""


def _list_inner_fields(raw: bytes, outer: int, inner: int) -> Iterator[bytes]:
    """Go through a repeated field of a message of the object."""
    for number, _, content in _list_fields(raw):
        if number == outer:
            for found, _, value in _list_fields(content):
                if found == inner:
                    yield value


def _list_fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Go through a message: each field's number, all its bytes, and its content."""
    at = 0
    while at < len(data):
        start = at
        key, at = _read_varint(data, at)
        match key & 7:
            case 0:  # a varint
                first, (_, at) = at, _read_varint(data, at)
            case 1:  # 64 bits
                first, at = at, at + 8
            case 2:  # bytes
                length, first = _read_varint(data, at)
                at = first + length
            case 5:  # 32 bits
                first, at = at, at + 4
            case kind:
                raise ValueError(f"no protobuf: wire type {kind}")
        if at > len(data):
            raise ValueError("no protobuf: it ends within a field")
        yield key >> 3, data[start:at], data[first:at]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & ~_MORE) << shift
        at, shift = at + 1, shift + 7
        if not byte & _MORE:
            return value, at
    raise ValueError("no protobuf: it ends within a number")


def _encode_message(number: int, content: bytes) -> bytes:
    """Write a field that has a length."""
    return _encode_varint(number << 3 | 2) + _encode_varint(len(content)) + content


def _encode_varint(value: int) -> bytes:
    written = bytearray()
    while value >= _MORE:
        written.append(value & ~_MORE & 0xFF | _MORE)
        value >>= 7
    written.append(value)
    return bytes(written)
