"""Larger batches whose answer is worth less than greedy finds: faults that are known.

By seed of `draw_everything(seed, MIDDLE)`: what was reached by priority, highest first,
and what greedy reaches. A batch that is decided well again is taken off this list, and
nobody puts one on it without looking for the cause.
"""

from __future__ import annotations

BELOW_GREEDY: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    3: ((40, 111), (40, 132)),
}
