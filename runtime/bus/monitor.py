"""What a nats-server says of itself on its monitoring port."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

FULL_DISK = ("no space left", "write error")
"""In its words, where it stores nothing because its disk is full, or was."""


def ask_monitor(
    url: str, *, timeout_s: float, trusted: ssl.SSLContext | None = None
) -> bytes:
    """Return the answer of an http:// or https:// URL, be it not healthy; blocks.

    Raises:
        OSError: there is none.
    """
    try:
        with urllib.request.urlopen(  # noqa: S310 # the scheme is the caller's to check
            url, timeout=timeout_s, context=trusted
        ) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.read()
