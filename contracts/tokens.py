"""Names as tokens of a subject: `.` is written `_`, other characters as `=XX`.

`token` makes any name one legal token, `untoken` reverses it.
"""

from __future__ import annotations

import re

from contracts.errors import SubjectError

_SPECIAL = re.compile(r"[^A-Za-z0-9-]")
_WITHOUT_ESCAPES = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
MAX_TOKEN = 253 * 3
"""Characters; a Kubernetes name has at most 253."""
_SHOWN = 40


def token(name: str) -> str:
    """Make a name one token of a subject; reversible.

    Raises:
        SubjectError: the name is empty, too long, or no Unicode.
    """
    if not name:
        raise SubjectError(name, "must not be empty")
    try:
        text = _SPECIAL.sub(_escape_character, name[: MAX_TOKEN + 1])
    except UnicodeEncodeError as error:
        raise SubjectError(ascii(name[:_SHOWN]), "is not Unicode") from error
    if len(text) > MAX_TOKEN:
        raise SubjectError(name[:_SHOWN] + "...", f"longer than {MAX_TOKEN} characters")
    return text


def untoken(text: str) -> str:
    """Reverse `token`.

    Raises:
        SubjectError: `token` makes no such text.
    """
    if len(text) <= MAX_TOKEN and _WITHOUT_ESCAPES.fullmatch(text):
        return text.replace("_", ".")
    encoded = text[: MAX_TOKEN + 1].replace("_", ".").encode()
    try:
        name = re.sub(
            rb"=([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), encoded
        ).decode()
    except UnicodeDecodeError as error:
        raise SubjectError(text[:_SHOWN], "is not a name") from error
    if token(name) != text:
        # One name has one subject: what is written once is written under no other.
        raise SubjectError(text[:_SHOWN], "does not encode its name")
    return name


def _escape_character(match: re.Match[str]) -> str:
    char = match[0]
    return "_" if char == "." else "".join(f"={byte:02X}" for byte in char.encode())
