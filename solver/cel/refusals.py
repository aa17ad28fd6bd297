"""The engine's complaints in the words that Kubernetes uses for them.

People who debug a selector search for those words. Limits that are ours alone say so,
so that nobody takes them for a mismatch.
"""

from __future__ import annotations

import re

from contracts.counts import counted
from solver.selectors.table import Verdict

MAX_TEXT = 500
"""Characters of an error that are kept; an expression may be 10 KiB."""
_OURS = "(a limit of this allocator)"
_TOO_DEEP = re.compile(
    r"(?:Exceeded max|Expression) recursion (?:limit|depth).*", re.DOTALL
)
_WORDS = (
    (re.compile(r'Key not found in map : "(.*)"', re.DOTALL), r"no such key: \1"),
    (re.compile(r"Key not found in map : (.*)", re.DOTALL), r"no such key: \1"),
    (re.compile(r"No matching overloads found.*", re.DOTALL), "no such overload"),
    (re.compile(r"Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"^$|std::bad_alloc"), "out of memory"),
    (
        re.compile(r"Iteration budget exceeded.*"),
        f"more than 10000 steps of a comprehension {_OURS}",
    ),
    (
        _TOO_DEEP,
        f"nested deeper than the engine reads {_OURS}",
    ),
)
_STATUS = re.compile(r"^(?:[A-Z_]+: )?(?:ERROR: <input>:(?:-?\d+:-?\d+: )?)?")
_STATUS_END = re.compile(r" \[[A-Z_]+\]$")


def compile_error(text: str) -> Verdict:
    """Make the verdict that an expression is no selector."""
    return Verdict(error=f"CEL compile error: {translate(text)}")


def runtime_error(text: str) -> Verdict:
    """Make the verdict that an expression fails on a device."""
    return Verdict(error=f"CEL runtime error: {translate(text)}")


TOO_COMPLEX = "too complex: "


def too_complex(cost: int, limit: int) -> str:
    """Word that an expression may cost too much, before it runs."""
    estimate = f"{cost}" if cost < 10 * limit else f"more than {10 * limit}"
    return f"{TOO_COMPLEX}estimated cost {estimate} exceeds the limit of {limit}"


def is_too_complex(verdict: Verdict) -> bool:
    """True if an expression is refused for what it may cost, on any device."""
    return verdict.error.startswith(f"CEL compile error: {TOO_COMPLEX}")


def too_expensive(spent_s: float, looks: int) -> Verdict:
    """Make the verdict that evaluating an expression costs too much."""
    devices = counted(looks, "device")
    error = f"too expensive: {spent_s:.1f} s of CPU time for {devices} {_OURS}"
    return Verdict(error=error)


def is_too_deep(text: str) -> bool:
    """True if the engine complains that an expression has too many levels."""
    return _TOO_DEEP.search(text) is not None


def translate(text: str) -> str:
    """Drop codes and drawings; use the words of Kubernetes where they differ."""
    text = _STATUS_END.sub("", _STATUS.sub("", text.strip()))
    for pattern, words in _WORDS:
        match = pattern.search(text)
        if match is not None:
            return match.expand(words)[:MAX_TEXT]
    line = text.splitlines()[0] if text else "unknown error"
    return line[:MAX_TEXT]
