"""Names as tokens of a subject: `.` is written `_`, other characters as `=XX`.

`token` makes any name one legal token, `untoken` reverses it.
"""

from __future__ import annotations

import re

from contracts.errors import SubjectError

_PLAIN = re.compile(r"[A-Za-z0-9-]")
MAX_TOKEN = 253 * 3
"""Characters; a Kubernetes name has at most 253."""


def token(name: str) -> str:
    """Make a name one token of a subject; reversible.

    Raises:
        SubjectError: the name is empty or too long.
    """
    if not name:
        raise SubjectError(name, "must not be empty")
    text = "".join(
        char
        if _PLAIN.match(char)
        else "_"
        if char == "."
        else "".join(f"={byte:02X}" for byte in char.encode())
        for char in name
    )
    if len(text) > MAX_TOKEN:
        raise SubjectError(name[:40] + "...", f"longer than {MAX_TOKEN} characters")
    return text


def untoken(text: str) -> str:
    """Reverse `token`.

    Raises:
        SubjectError: `token` makes no such text.
    """
    encoded = text.replace("_", ".").encode()
    try:
        return re.sub(
            rb"=([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), encoded
        ).decode()
    except UnicodeDecodeError as error:
        raise SubjectError(text, "is no name") from error
