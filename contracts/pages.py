"""Pages of a stream, as those outside of its account ask for them and get them.

A page is one message: a line of JSON that lists its messages (`PageHead`), and then
their bodies, one after the other. So these come as they were stored, whatever they are.

Source: docs/bus.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

PAGE_MESSAGES = 500
_MAX_SEQUENCE = (1 << 63) - 1
_LINE_END = b"\n"


class PageRequest(Struct, frozen=True):
    """Asks for messages of a subject from a sequence on, 500 at most."""

    seq: Annotated[int, Meta(ge=1, le=_MAX_SEQUENCE)]
    next_by_subj: str
    """A subject, in which `*` and `>` may stand."""
    batch: Annotated[int, Meta(ge=1)] = PAGE_MESSAGES


class PageMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a page; its subject's channel tells what is in its body."""

    sequence: int
    subject: str
    time: str
    """When the server stored it (RFC 3339)."""
    bytes: Annotated[int, Meta(ge=0)]
    """Length of its body."""
    headers: dict[str, str] = {}


class PageHead(Struct, frozen=True, kw_only=True):
    """The first line of a page; the bodies of its messages follow in their order."""

    messages: tuple[PageMessage, ...] = ()
    pending: int
    """Messages that are still to come behind them."""


_HEAD = msgspec.json.Decoder(PageHead)


def write_page(head: PageHead, bodies: Sequence[bytes]) -> bytes:
    """Write a page as it travels; each body has the length that the head tells."""
    return b"".join((msgspec.json.encode(head), _LINE_END, *bodies))


def read_page(data: bytes) -> tuple[PageHead, list[bytes]]:
    """Read a page and the bodies of its messages.

    Raises:
        ValueError: it is none, or not whole.
    """
    line, _, rest = data.partition(_LINE_END)
    head = _HEAD.decode(line)
    bodies, begin = [], 0
    for message in head.messages:
        bodies.append(rest[begin : begin + message.bytes])
        begin += message.bytes
    if begin != len(rest):
        raise ValueError(f"{len(rest)} bytes, not {begin}")
    return head, bodies
