"""Describes the bus as an AsyncAPI 3 document: channels, messages, operations, schemas.

All of it follows from the rows of topics.py and streams.py and from the Structs of the
messages, so it can say nothing that the services do not do. Pure.

Source: AsyncAPI 3.0.0 (https://www.asyncapi.com/docs/reference/specification/v3.0.0).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec

from contracts.cloud_events import describe_headers
from contracts.pages import PageHead, PageRequest
from contracts.quantity import Quantity
from contracts.streams import STREAMS, Stream
from contracts.topics import (
    BLOBS,
    FENCE,
    GANG_TOPICS,
    TOPICS,
    VERSION,
    SubjectFamily,
    Topic,
)

ASYNCAPI = "3.0.0"
_SCHEMA = "#/components/schemas/{name}"
_DESCRIPTION = """\
Gangs of pods ask for devices, and are answered: all of a gang or nothing. Publish a
SubmitGang, and follow the decisions of its subject.

A name in a subject is one token: letters of ASCII, digits and `-` as they are, `.` as
`_`, anything else as `=XX`, the hex of its UTF-8 bytes. A message belongs on the
subject of the names that it carries; elsewhere it is refused. What travels is stored by
JetStream: the acknowledgement of the server is the acceptance. In an account of its own
an application reaches JetStream below `JS.CORE.API`, as docs/bus.md says. Whoever
follows asks for one page after the other on `page.request`; what comes on `evt` tells
when, and some of it may be lost.
"""
_QUANTITY = {
    "type": "string",
    "description": "A quantity as Kubernetes writes them, such as `80Gi` or `1500m`.",
}


def describe(version: str) -> dict[str, Any]:
    """Return the document for a version of Moorings, as dicts, lists and scalars."""
    families: tuple[SubjectFamily, ...] = (*TOPICS, BLOBS)
    channels = {family.entity: _describe_channel(family) for family in families}
    operations: dict[str, Any] = {}
    for family in families:
        operations |= _describe_operations(family)
        if _stream_of(family).republish and family is not FENCE:
            name = f"{_stream_of(family).republish}.{family.entity}"
            channels[name] = _describe_republished(family)
            operations[f"send.{name}"] = _make_operation("send", name, _RELAYS)
    channels |= _describe_page_channels()
    operations |= _describe_page_operations()
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "Moorings",
            "version": version,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "nats": {
                "host": "{host}:4222",
                "protocol": "nats",
                "description": "nats-server with JetStream; TLS and a user on a site.",
                "variables": {"host": {"default": "127.0.0.1"}},
                "security": [{"$ref": "#/components/securitySchemes/user"}],
            }
        },
        "channels": channels,
        "operations": operations,
        "components": {
            "messages": dict(_describe_messages()) | _PAGE_MESSAGES,
            "schemas": _describe_schemas(),
            "securitySchemes": {
                "user": {
                    "type": "userPassword",
                    "description": "A user of the bus, or a token of Kubernetes.",
                }
            },
        },
    }


def messages_of(topic: Topic[Any]) -> tuple[type, ...]:
    """List the types that travel on a topic."""
    return get_args(topic.codec.kind) or (topic.codec.kind,)


# --- channels --------------------------------------------------------------------


def _describe_channel(family: SubjectFamily) -> dict[str, Any]:
    names = [kind.__name__ for kind in _kinds_of(family)] or ["Chunk"]
    return {
        "address": _address(family),
        "messages": _refer_to_messages(*names),
        "parameters": {name: {"description": _NAMES[name]} for name in family.names},
        "x-stream": _describe_stream(_stream_of(family)),
    }


def _describe_republished(family: SubjectFamily) -> dict[str, Any]:
    """Describe what subscribers hear once it is stored."""
    channel = _describe_channel(family)
    prefix = channel["x-stream"]["republish"]
    description = (
        "News: what was stored, as it is stored, for whoever listens at the time; its "
        "sequence is in the header Nats-Sequence. Some may be lost; pages have all."
    )
    del channel["x-stream"]
    return {
        **channel,
        "address": f"{prefix}.{channel['address']}",
        "description": description,
    }


_NAMES = {
    "cluster": "The cluster's name, one word for all of a bus.",
    "node": "A Node's name.",
    "namespace": "A namespace of Kubernetes.",
    "uid": "The gang's uid, of its namespace alone.",
    "kind": "A kind of Kubernetes, such as `Pod`.",
    "key": "`name`, or `namespace/name`.",
    "name": "The name of a group of pods.",
    "id": "A solve.",
    "sha256": "Hash of the bytes, in hex.",
    "chunk": "The number of a chunk, from 0; `ok` once all are there.",
}


def _address(family: SubjectFamily) -> str:
    return ".".join((family.entity, VERSION, *(f"{{{name}}}" for name in family.names)))


def _describe_stream(stream: Stream) -> dict[str, Any]:
    """Return what a subscriber must know of the stream: what it keeps, and how long."""
    kept: dict[str, Any] = {"name": stream.name, "maxBytes": stream.max_bytes}
    if stream.per_subject > 0:
        kept["maxMessagesPerSubject"] = stream.per_subject
    if stream.max_age_s:
        kept["maxAgeSeconds"] = stream.max_age_s
    if stream.write_once:
        kept["writeOnce"] = True
    if stream.republish:
        kept["republish"] = stream.republish
    return kept


def _stream_of(family: SubjectFamily) -> Stream:
    return next(stream for stream in STREAMS if stream.name == family.stream)


# --- operations ------------------------------------------------------------------


def _describe_operations(family: SubjectFamily) -> dict[str, Any]:
    """Describe what services do on a channel: send, or receive from who is outside."""
    entity = family.entity
    services = tuple(user for user in family.senders if user != "platform")
    operations: dict[str, Any] = {}
    if services:
        operations[f"send.{entity}"] = _make_operation("send", entity, services)
    if "platform" in family.senders:
        receivers = tuple(user for user in family.receivers if user in _SERVICES)
        operations[f"receive.{entity}"] = _make_operation("receive", entity, receivers)
    return operations


_SERVICES = frozenset(("solver", "publisher", "nodeagent"))


def _make_operation(
    action: str, channel: str, users: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{_escape_pointer(channel)}"},
        "x-users": list(users),
    }


def _escape_pointer(name: str) -> str:
    """Write a name as one step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


# --- pages -----------------------------------------------------------------------

_RELAYS = ("solver", "publisher")
"""Services that answer those outside of their account, and tell them what is new."""
_PAGE_MESSAGES: dict[str, Any] = {
    PageRequest.__name__: {
        "name": PageRequest.__name__,
        "summary": inspect.getdoc(PageRequest),
        "payload": {"$ref": _SCHEMA.format(name=PageRequest.__name__)},
    },
    "Page": {
        "name": "Page",
        "summary": "A line of JSON, and behind it the bodies of its messages.",
        "description": "The payload is that line. An answer with a header `Status` is "
        "no page: ask again.",
        "payload": {"$ref": _SCHEMA.format(name=PageHead.__name__)},
    },
}


def _describe_page_channels() -> dict[str, Any]:
    streams = sorted({topic.stream for topic in TOPICS if _is_read_outside(topic)})
    return {
        "page.request": {
            "address": "JS.CORE.API.DIRECT.GET.{stream}",
            "messages": _refer_to_messages(PageRequest.__name__),
            "parameters": {
                "stream": {"description": "Whose messages.", "enum": streams}
            },
        },
        "page": {
            "address": None,
            "description": "The reply subject of the request.",
            "messages": _refer_to_messages("Page"),
        },
    }


def _is_read_outside(topic: Topic[Any]) -> bool:
    return bool({"platform", "viewer"} & set(topic.receivers))


def _describe_page_operations() -> dict[str, Any]:
    asked = _make_operation("receive", "page.request", _RELAYS)
    return {
        "receive.page.request": {
            **asked,
            "reply": {"channel": {"$ref": "#/channels/page"}},
        }
    }


def _refer_to_messages(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


# --- messages and schemas ----------------------------------------------------------


def _kinds_of(family: SubjectFamily) -> tuple[type, ...]:
    return messages_of(family) if isinstance(family, Topic) else ()


def _describe_messages() -> Iterator[tuple[str, dict[str, Any]]]:
    for topic in TOPICS:
        for kind in messages_of(topic):
            message: dict[str, Any] = {
                "name": kind.__name__,
                "summary": inspect.getdoc(kind),
                "payload": {"$ref": _SCHEMA.format(name=kind.__name__)},
            }
            if topic in GANG_TOPICS:
                message["headers"] = describe_headers()
            if topic.zstd:
                message["headers"] = _ZSTD
                message["description"] = "The payload is compressed by zstd."
            yield kind.__name__, message
    chunk = {"name": "Chunk", "summary": "Bytes, compressed by zstd."}
    yield "Chunk", {**chunk, "contentType": "application/octet-stream"}


_ZSTD = {
    "type": "object",
    "properties": {"Content-Encoding": {"const": "zstd"}},
    "required": ["Content-Encoding"],
}


def _describe_schemas() -> dict[str, Any]:
    kinds = [kind for topic in TOPICS for kind in messages_of(topic)]
    kinds += (PageRequest, PageHead)
    _, schemas = msgspec.json.schema_components(
        kinds, schema_hook=_describe_type, ref_template=_SCHEMA
    )
    return {name: _simplify_schema(schemas[name]) for name in sorted(schemas)}


def _describe_type(kind: type) -> dict[str, Any]:
    if kind is Quantity:
        return _QUANTITY
    raise NotImplementedError(kind.__name__)


def _simplify_schema(schema: Any) -> Any:
    """Write discriminators as AsyncAPI has them: the name of the property alone."""
    if isinstance(schema, list):
        return [_simplify_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: value["propertyName"]
        if key == "discriminator"
        else _simplify_schema(value)
        for key, value in schema.items()
    }
