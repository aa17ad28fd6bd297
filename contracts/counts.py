"""Counts and lists in sentences, with singular and plural."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun: `1 pod`, `2 pods`, `0 pods`.

    `nouns` is what several are called, where that is not the noun and an s; both may
    have the words that go with it, such as `pod waits` and `pods wait`.
    """
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"


def ordinal(number: int) -> str:
    """Write a place in a line: `1st`, `2nd`, `3rd`, `11th`."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    is_teen = number // 10 % 10 == 1
    return f"{number}{'th' if is_teen else endings.get(number % 10, 'th')}"


def listed(names: Sequence[str]) -> str:
    """Write a list in a sentence: `a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
