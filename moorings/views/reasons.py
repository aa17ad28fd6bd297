"""Reasons that many gangs have: a mark in each row, and the words once below. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from contracts.counts import counted

FEW = 3
"""What no more gangs have stands in each row."""


def share_reasons(reasons: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what each row says, and the lines below the table.

    A reason of more than `FEW` rows becomes its rule and a number, `JointCapacity [1]`.
    """
    counts = Counter(reasons)
    numbers: dict[str, int] = {}
    cells, lines = [], []
    for reason in reasons:
        rule, colon, _ = reason.partition(":")
        if not colon or counts[reason] <= FEW:
            cells.append(reason)
            continue
        if reason not in numbers:
            numbers[reason] = len(numbers) + 1
            gangs = counted(counts[reason], "gang")
            lines.append(f"[{numbers[reason]}] {gangs}: {reason}")
        cells.append(f"{rule} [{numbers[reason]}]")
    return cells, lines
