"""What each user of the bus may publish and subscribe to, as nats-server reads it.

Follows from the topics and from how the bus reads streams: pull consumers, the last
message of a subject, blobs in pieces. Written by `moorings permissions`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.topics import BLOBS, STREAMS, TOPICS
from runtime.wire import inbox_prefix

USERS = ("solver", "publisher", "nodeagent", "platform", "viewer")
CREATORS = ("solver", "publisher")
"""Who creates streams that are not there."""
SUBSCRIBERS = ("platform", "viewer")
"""Who may listen to what is republished, without a consumer."""
_READING = ("CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE", "CONSUMER.MSG.NEXT")


class Permissions(Struct, frozen=True, kw_only=True):
    """Subjects, with wildcards, that a user may use; all others are refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def permissions_of(user: str) -> Permissions:
    """Say what a user needs, and no more."""
    return Permissions(
        publish=tuple(sorted(set(_publishes(user)))),
        subscribe=tuple(sorted(set(_subscribes(user)))),
    )


def server_configuration() -> str:
    """Write the authorization block of nats-server.

    Passwords are variables of its environment, such as `$SOLVER_PASSWORD`.
    """
    lines = [
        "# Written by `moorings permissions`.",
        "authorization {",
        "  users: [",
    ]
    for user in USERS:
        allowed = permissions_of(user)
        lines += [
            "    {",
            f"      user: {user}",
            f"      password: ${user.upper()}_PASSWORD",
            "      permissions {",
            *_listed("publish", allowed.publish),
            *_listed("subscribe", allowed.subscribe),
            "      }",
            "    }",
        ]
    return "\n".join([*lines, "  ]", "}", ""])


def _listed(what: str, subjects: tuple[str, ...]) -> Iterator[str]:
    yield f"        {what} {{ allow: ["
    yield from (f'          "{subject}"' for subject in subjects)
    yield "        ] }"


def _publishes(user: str) -> Iterator[str]:
    for topic in TOPICS:
        if user in topic.senders:
            yield topic.any_subject
            # A sender looks at what is there when its message is refused.
            yield f"$JS.API.STREAM.MSG.GET.{topic.stream}"
        if user in {*topic.senders, *topic.receivers}:
            yield from _reads(topic.stream)
    if user in CREATORS:
        for stream in STREAMS:
            yield f"$JS.API.STREAM.CREATE.{stream.name}"
            yield f"$JS.API.STREAM.INFO.{stream.name}"
    if user in BLOBS.senders:
        yield BLOBS.any_subject
    if user in BLOBS.receivers:
        # Read by name, chunk by chunk, from any copy of the stream.
        yield f"$JS.API.STREAM.MSG.GET.{BLOBS.stream}"
        yield f"$JS.API.DIRECT.GET.{BLOBS.stream}.>"


def _reads(stream: str) -> Iterator[str]:
    yield f"$JS.API.STREAM.INFO.{stream}"
    yield f"$JS.API.STREAM.MSG.GET.{stream}"
    yield from (f"$JS.API.{operation}.{stream}.*" for operation in _READING)


def _subscribes(user: str) -> Iterator[str]:
    yield f"{inbox_prefix(user)}.>"
    prefixes = {stream.name: stream.republish for stream in STREAMS}
    for topic in TOPICS:
        if user in SUBSCRIBERS and user in topic.receivers and prefixes[topic.stream]:
            yield f"{prefixes[topic.stream]}.{topic.any_subject}"
