"""Access to the console by token, host and origin. Pure.

A page of somebody else's in the same browser reaches loopback, too. It does not know
the token, which no cookie carries; and a name of its own that it lets point to
loopback (DNS rebinding) is refused as a host.
"""

from __future__ import annotations

import hmac
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_SCHEME = "bearer "
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer: only our own files run, and no text of others becomes a page."""


class ConsoleRight(StrEnum):
    """What the bearer of a token may do."""

    NONE = "none"
    LOOK = "look"
    CHANGE = "change"
    """Look, submit, cancel and release."""


class Tokens(Struct, frozen=True, kw_only=True):
    """The tokens of one console."""

    look: str
    change: str = ""
    """Empty: changes are not allowed."""

    def right_of(self, authorization: str) -> ConsoleRight:
        """Return what the header of a request allows."""
        if not authorization.lower().startswith(_SCHEME):
            return ConsoleRight.NONE
        # aiohttp keeps what is no UTF-8 as surrogates.
        shown = authorization[len(_SCHEME) :].strip().encode(errors="surrogateescape")
        if self.change and hmac.compare_digest(shown, self.change.encode()):
            return ConsoleRight.CHANGE
        if hmac.compare_digest(shown, self.look.encode()):
            return ConsoleRight.LOOK
        return ConsoleRight.NONE


def is_local(host: str) -> bool:
    """True if the Host of a request names this machine.

    The port may be another: somebody may have forwarded one of theirs to ours.
    """
    try:
        return urlsplit(f"//{host}").hostname in LOCAL_NAMES
    except ValueError:
        return False


def is_same_origin(origin: str, host: str) -> bool:
    """True if a request comes from our own page, or has no origin."""
    return not origin or origin == f"http://{host}"
