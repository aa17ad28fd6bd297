"""Semantic Versions as Kubernetes reads them: strict, and what normalising mends.

Stands alone because a malformed version makes a device fail every selector, which the
core must know, and because the sandbox compares versions.

Source: semver.org 2.0.0; github.com/blang/semver/v4, Parse and its callers.
"""

from __future__ import annotations

import re

from solver.cache import cached

_IDENTIFIER = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_CORE = re.compile(r"[0-9.]*")
_UINT64 = 2**64
MAX_TEXT = 1024
"""Characters; an attribute of a device has at most 64 (resource.k8s.io)."""

Precedence = tuple[tuple[int, int, int], tuple[tuple[int, int, str], ...]]
"""Orders versions; a release has one part that no pre-release reaches."""
_RELEASE = ((2, 0, ""),)


@cached(bound=65536)
def precedence_of(text: str) -> Precedence | None:
    """Return a key that sorts versions; None: it is none."""
    if len(text) > MAX_TEXT:
        return None
    match = _SEMVER.fullmatch(text)
    if match is None:
        return None
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    parts = match[4].split(".") if match[4] else ()
    pre = tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts)
    if max(*numbers, *(part[1] for part in pre)) >= _UINT64:
        return None
    return numbers, pre or _RELEASE


def is_semver(text: str) -> bool:
    """True if a text is a Semantic Version 2.0.0, strictly."""
    return precedence_of(text) is not None


def normalize_version(text: str) -> str:
    """Strip a `v` and leading zeros, and pad missing parts."""
    text = text.removeprefix("v")
    core = _CORE.match(text)
    end = core.end() if core is not None else 0
    numbers = text[:end].split(".")
    if len(numbers) > 3 or not all(numbers):
        return text
    padded = [*numbers, "0", "0"][:3]
    return ".".join(part.lstrip("0") or "0" for part in padded) + text[end:]
