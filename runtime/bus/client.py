"""The client library's client, for messages that anybody may have sent.

What a message says of itself (its subject, its headers) is its sender's. The library
ends a connection over a subject that is not UTF-8 or has a form feed, over a status
that is not ASCII, and reads every line of headers in Python: one message would keep its
readers from all behind it. Here each is read as it stands, and large headers are not:
who takes the message refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import nats.protocol.parser
from nats.aio.client import Client
from nats.aio.msg import Msg

from runtime.wire import OVERSIZED

MAX_HEADER_BYTES = 4 << 10
"""Of a block; ours have some hundreds."""
_VERSION = b"NATS/1.0"
_LINE = b"\r\n"
_OF_SERVERS = (
    *("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Last-Sequence"),
    *("Nats-Time-Stamp", "Nats-Num-Pending", "Nats-UpTo-Sequence"),
)
"""What nats-server says of a message, behind what its sender said."""
# Where a form feed is no space: nats-server takes a subject that has one.
_WORD, _SPACE = rb"[^ \t\r\n]+", rb"[ \t]+"
_SUBJECT = _SPACE.join((b"", rb"(%b)" % _WORD, rb"(\d+)", rb"((%b)[ \t]+)?" % _WORD))
nats.protocol.parser.MSG_RE = re.compile(rb"\AMSG%b(\d+)\r\n" % _SUBJECT)
nats.protocol.parser.HMSG_RE = re.compile(rb"\AHMSG%b(\d+)[ \t]+(\d+)\r\n" % _SUBJECT)


Unwanted = Callable[[bytes], bool]
"""True of the subject of a message that is passed over unread."""
_SKIPPED = re.compile(rb"H?MSG%b(?:\d+[ \t]+)?(\d+)\r\n" % _SUBJECT)


class _Parser(nats.protocol.parser.Parser):
    """Passes over messages that nobody wants, at a tenth of what reading them takes."""

    def __init__(self, client: Client, is_unwanted: Unwanted) -> None:
        super().__init__(client)
        self._is_unwanted = is_unwanted

    async def parse(self, data: bytes = b"") -> None:
        """Parse what came, behind what came before."""
        if self.state == nats.protocol.parser.AWAITING_CONTROL_LINE:
            data = bytes(self.buf) + data
            self.buf.clear()
        else:
            missing = max(self.needed + len(_LINE) - len(self.buf), 0)
            await super().parse(data[:missing])
            data = data[missing:]
        if data:
            await super().parse(self._choose(data))

    def _choose(self, data: bytes) -> bytes:
        """Leave out whole messages that nobody wants."""
        wanted, begin, at = [], 0, 0
        while found := _SKIPPED.match(data, at):
            end = found.end() + int(found[5]) + len(_LINE)
            if end > len(data):
                break
            if self._is_unwanted(found[1]):
                wanted.append(data[begin:at])
                begin = end
            at = end
        wanted.append(data[begin:])
        return b"".join(wanted)


class TolerantClient(Client):
    """Hands over every message, whatever its subject and headers are."""

    def __init__(self, is_unwanted: Unwanted | None = None) -> None:
        super().__init__()
        if is_unwanted is not None:
            self._ps = _Parser(self, is_unwanted)

    @property
    def is_sending(self) -> bool:
        """True if what is buffered is sent.

        The library's task that does so ends for good if the server's first line, after
        a slow handshake, is a PING of its own; and the library says nothing of it.
        """
        task = self._flusher_task
        return self.is_connected and task is not None and not task.done()

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        return read_headers(headers) if headers else None

    def _build_message(
        self,
        sid: int,
        subject: bytes,
        reply: bytes,
        data: bytes,
        headers: dict[str, str] | None,
    ) -> Msg:
        return self.msg_class(
            subject=subject.decode(errors="replace"),
            reply=reply.decode(errors="replace"),
            data=data,
            headers=headers,
            _client=self,
            _sid=sid,
        )


def read_headers(block: bytes) -> dict[str, str]:
    """Read a block of headers as it travelled; of a name that comes twice the last.

    A status of the server is `Status`, with its `Description`. Of a block that is too
    large only what the server says is read.
    """
    first, _, rest = block.partition(_LINE)
    headers: dict[str, str] = {}
    status, _, description = (
        first.removeprefix(_VERSION).strip().decode(errors="replace").partition(" ")
    )
    if status.isdecimal() and status.isascii():
        headers["Status"] = status
        if description:
            headers["Description"] = description
    if len(block) > MAX_HEADER_BYTES:
        return headers | _find_said_by_server(block) | {OVERSIZED: str(len(block))}
    for line in rest.split(_LINE):
        name, colon, value = line.partition(b":")
        if colon:
            headers[name.decode(errors="replace")] = value.strip().decode(
                errors="replace"
            )
    return headers


def _find_said_by_server(block: bytes) -> dict[str, str]:
    found = {}
    for name in _OF_SERVERS:
        at = block.rfind(b"%b%b:" % (_LINE, name.encode()))
        if at >= 0:
            value = block[at + len(_LINE) + len(name) + 1 :].partition(_LINE)[0]
            found[name] = value[:MAX_HEADER_BYTES].strip().decode(errors="replace")
    return found
