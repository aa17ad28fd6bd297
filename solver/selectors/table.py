"""The recorded verdicts of selectors: what each said of what it could see.

The table is part of the Problem, so that an answer is a function of the Problem alone;
nothing here evaluates anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from contracts.device import Device, DeviceAttribute
from solver.cache import Memory
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, project


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What a selector says of a projection: true, false, or an error."""

    value: bool | None = None
    error: str = ""
    """Not empty: evaluating it fails, with this text."""
    attribute: DeviceAttribute | None = None
    """What a derived attribute is; None: the expression is a selector."""


class SelectorRows(Struct, frozen=True, kw_only=True, rename="camel"):
    """The recorded verdicts of one expression."""

    expression: str
    rows: tuple[tuple[str, Verdict], ...]
    """(look, verdict), sorted."""


VerdictRow = tuple[str, Projection, Verdict]
"""(expression, look, verdict)."""


class SelectorTable:
    """Verdicts by expression and projection; frozen.

    `memory`: what is remembered of it.
    """

    def __init__(
        self, verdicts: Mapping[tuple[str, Projection], Verdict] | None = None
    ) -> None:
        self._verdicts = dict(verdicts or {})
        self.memory = Memory()

    @classmethod
    def of(cls, rows: Iterable[VerdictRow]) -> SelectorTable:
        """Make a table of these rows."""
        return cls(
            {
                (expression, projection): verdict
                for expression, projection, verdict in rows
            }
        )

    @classmethod
    def of_rows(cls, recorded: Iterable[SelectorRows]) -> SelectorTable:
        """Read a recorded table back."""
        return cls(
            {
                (of_expression.expression, Projection(projection)): verdict
                for of_expression in recorded
                for projection, verdict in of_expression.rows
            }
        )

    def __len__(self) -> int:
        return len(self._verdicts)

    def extends(self, other: SelectorTable) -> bool:
        """True if this table knows all that another one does."""
        return self._verdicts.keys() >= other._verdicts.keys()

    def get(self, expression: str, projection: Projection) -> Verdict | None:
        """Look a verdict up; None: it was not evaluated."""
        return self._verdicts.get((expression, projection))

    def with_verdicts(
        self, evaluated: Sequence[tuple[str, str, Device]], verdicts: Sequence[Verdict]
    ) -> SelectorTable:
        """Add what an evaluation of (expression, driver, device) gave."""
        known_verdicts = dict(self._verdicts)
        for (expression, driver, device), verdict in zip(
            evaluated, verdicts, strict=True
        ):
            known_verdicts[
                expression, project(footprint_of(expression), driver, device)
            ] = verdict
        return SelectorTable(known_verdicts)

    def with_table(self, other: SelectorTable) -> SelectorTable:
        """Add the verdicts of another table."""
        return SelectorTable({**other._verdicts, **self._verdicts})

    def rows(self) -> tuple[SelectorRows, ...]:
        """Write the table in its canonical order."""
        by_expression: dict[str, list[tuple[str, Verdict]]] = {}
        for (expression, projection), verdict in self._verdicts.items():
            by_expression.setdefault(expression, []).append((projection, verdict))
        return tuple(
            SelectorRows(
                expression=expression,
                rows=tuple(sorted(by_expression[expression], key=lambda row: row[0])),
            )
            for expression in sorted(by_expression)
        )
