"""A linear program with bounded variables, solved in plain Python.

Floating point finds the prices, and fractions make a bound of them: whatever prices
there are, the bound is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Rows = Sequence[tuple[Sequence[float], float]]
"""(what each variable uses, what there is), all of them at least 0."""
TOLERANCE = 1e-9
MOST_PIVOTS = 10_000


def bound_above(worth: Sequence[int], rows: Rows) -> Fraction:
    """Bound the most worth of variables between 0 and 1 that keep all rows.

    With a price for each row the rows sold out are worth a sum, and each variable what
    it brings beyond the prices of what it uses. Prices of the best solution make this
    the value of the program.
    """
    prices = [Fraction(max(0.0, price)) for price in _prices(worth, rows)]
    total = sum(
        (
            price * Fraction(there)
            for price, (_, there) in zip(prices, rows, strict=True)
        ),
        Fraction(0),
    )
    for number, value in enumerate(worth):
        cost = sum(
            (
                price * Fraction(uses[number])
                for price, (uses, _) in zip(prices, rows, strict=True)
            ),
            Fraction(0),
        )
        total += max(Fraction(0), value - cost)
    return total


def _prices(worth: Sequence[int], rows: Rows) -> list[float]:
    """Find the prices of the rows by the simplex method.

    Rows are scaled, so that each has 1 of what there is. A variable at its upper bound
    is seen from there: it stands for what is missing to 1.
    """
    scales = [there or 1.0 for _, there in rows]
    count, size = len(worth), len(worth) + len(rows)
    table = [
        [
            *(use / scale for use in uses),
            *(float(other == number) for other in range(len(rows))),
            there / scale,
        ]
        for number, ((uses, there), scale) in enumerate(zip(rows, scales, strict=True))
    ]
    gains = [*map(float, worth), *(0.0 for _ in rows), 0.0]
    basis = [count + number for number in range(len(rows))]
    for _ in range(MOST_PIVOTS):
        entering = max(range(size), key=gains.__getitem__)
        if gains[entering] <= TOLERANCE:
            break
        row, step, from_above = -1, 1.0 if entering < count else float("inf"), False
        for number, line in enumerate(table):
            slope, there = line[entering], line[size]
            if slope > TOLERANCE and there / slope < step:
                row, step, from_above = number, there / slope, False
            elif slope < -TOLERANCE and basis[number] < count:
                limit = (1.0 - there) / -slope
                if limit < step:
                    row, step, from_above = number, limit, True
        if row < 0:
            _turn(table, gains, entering, size)
            continue
        if from_above:
            _turn_basic(table[row], basis[row], size)
        _pivot(table, gains, row, entering)
        basis[row] = entering
    return [-gains[count + number] / scale for number, scale in enumerate(scales)]


def _turn(table: list[list[float]], gains: list[float], column: int, size: int) -> None:
    """Set a variable to its upper bound, and see it from there."""
    for line in table:
        line[size] -= line[column]
        line[column] = -line[column]
    gains[column] = -gains[column]


def _turn_basic(line: list[float], column: int, size: int) -> None:
    """See the variable of a row from its upper bound."""
    for index in range(size):
        if index != column:
            line[index] = -line[index]
    line[size] = 1.0 - line[size]


def _pivot(table: list[list[float]], gains: list[float], row: int, column: int) -> None:
    own = table[row]
    scale = own[column]
    own[:] = [value / scale for value in own]
    for line in (*table, gains):
        factor = line[column]
        if line is not own and factor:
            line[:] = [
                value - factor * mine for value, mine in zip(line, own, strict=True)
            ]
