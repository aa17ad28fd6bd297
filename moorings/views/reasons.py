"""Reasons why gangs wait: shared by many rows of a table, and their counts in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from contracts.counts import counted

FEW = 3
"""A reason of no more gangs than this is repeated in each row."""
_DEVICES_LEFT = {
    "devices": "in total",
    "selected": "match",
    "onSelectedNodes": "on nodes that the pod selects",
    "onUsableNodes": "on usable nodes",
    "onToleratedNodes": "on nodes with tolerated taints",
    "besideOtherPods": "where rules between pods allow it",
    "supported": "supported by the enabled features",
    "free": "free",
    "eligible": "free and not tainted",
}
"""Devices that are left after each rule, in the order of the rules."""


def share_reasons(reasons: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the reason in each row, and the lines below the table.

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


def describe_facts(facts: Mapping[str, int]) -> str:
    """Write the counts of a reason: `devices: 128 in total, 64 match; pods 1, room 0`.

    A rule that left as many devices as the one before is skipped.
    """
    rest = dict(facts)
    steps: list[str] = []
    before = -1
    if "selected" in facts:
        for name, words in _DEVICES_LEFT.items():
            left = rest.pop(name, before)
            if left != before:
                steps.append(f"{left:,} {words}")
            before = left
    others = ", ".join(f"{_spell(name)} {count:,}" for name, count in rest.items())
    devices = f"devices: {', '.join(steps)}" if steps else ""
    return "; ".join(filter(None, (devices, others)))


def _spell(name: str) -> str:
    """Split the words of a name: `maxPods` becomes `max pods`."""
    return re.sub("([A-Z])", r" \1", name).lower()
