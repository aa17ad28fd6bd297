"""Answers of the API server that hold what cannot be read as JSON, read all the same.

Parameters of drivers are kept byte by byte as their author wrote them: nested
thousands deep, with numbers past any range, or halves of characters. The API server
takes that (Go's `json.Valid`), and lists of all namespaces contain it. So what cannot
be read is cut out, and the object that it is of is marked: it is known to be there, and
nobody decides by it.

Source: k8s.io/apimachinery/pkg/runtime, RawExtension; resource.k8s.io/v1,
OpaqueDeviceConfiguration (10 KiB each).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from math import isinf
from typing import Any

import msgspec

ALTERED = "moorings.dev/unreadable"
"""Key of an object that is not as it is served, beside `kind`; says why."""
WHY = "it holds JSON that is nested too deep, or no number or text that can be read"
_DEPTH = 100
_DIGITS = 300
_CUT = secrets.token_hex(16).encode()
_PLACE = b'"' + _CUT + b'"'
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]+|[\]}]+|-?\d[\d.eE+-]*', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in a string; the group is half a character."""


def cut_unreadable(body: bytes) -> bytes:
    """Return JSON without what cannot be read; the same where nothing is cut."""
    parts: list[bytes] = []
    at = depth = 0
    cut: int | None = None
    for match in _TOKEN.finditer(body):
        text = match[0]
        if text[0] in b"[{":
            if cut is None and depth + len(text) > _DEPTH:
                cut = match.start() + _DEPTH - depth
            depth += len(text)
        elif text[0] in b"]}":
            if cut is not None and depth - len(text) <= _DEPTH:
                parts += [body[at:cut], _PLACE]
                at, cut = match.start() + depth - _DEPTH, None
            depth -= len(text)
        elif cut is None and not _is_readable(text):
            parts += [body[at : match.start()], _PLACE]
            at = match.end()
    return b"".join((*parts, body[at:]))


def mark_altered(objects: Iterable[dict[str, Any]]) -> None:
    """Have each object of which something was cut say so."""
    for raw in objects:
        if _CUT in msgspec.json.encode(raw):
            raw[ALTERED] = WHY


def _is_endless(number: bytes) -> bool:
    try:
        return isinf(float(number))
    except ValueError:
        return False  # it is no number: whoever decodes says so


def _is_readable(text: bytes) -> bool:
    """True if a string or number is readable."""
    if text[:1] != b'"':
        return len(text) <= _DIGITS and not _is_endless(text)
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return b"\\u" not in text or not any(found[1] for found in _ESCAPE.finditer(text))
