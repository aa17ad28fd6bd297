"""Fills `{name}` and `{name:03}` in the texts of a fleet file.

A small language of its own rather than `str.format`: format strings can reach into
objects and ask for gigabytes of padding.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_PLACEHOLDER = re.compile(r"\{(\w+)(?::(0[1-9])?([dx])?)?\}", re.ASCII)


def find_unknown_placeholders(text: str, allowed: Collection[str]) -> tuple[str, ...]:
    """List unknown placeholders in a text."""
    unknown = [
        match[0] for match in _PLACEHOLDER.finditer(text) if match[1] not in allowed
    ]
    rest = _PLACEHOLDER.sub("", text)
    return (*unknown, *re.findall(r"[{}][^{}]*", rest))


def fill(text: str, values: Mapping[str, str | int]) -> str:
    """Replace the placeholders; `{index:03}` pads a number, `{index:02x}` is hex."""
    if "{" not in text:
        return text
    return _PLACEHOLDER.sub(lambda match: _format_value(values[match[1]], match), text)


def _format_value(value: str | int, match: re.Match[str]) -> str:
    if isinstance(value, str):
        return value
    return format(value, f"{match[2] or ''}{match[3] or 'd'}")
