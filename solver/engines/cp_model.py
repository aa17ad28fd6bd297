"""CP-SAT's models upon its binding alone, without OR-Tools' own module of this name.

That one imports pandas, for methods over whole series that no engine calls: half a
second and 50 MiB in every process that decides. What is here makes the same messages,
which a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model_helper as binding
from ortools.sat.python.cp_model_helper import BoundedLinearExpression as Comparison
from ortools.sat.python.cp_model_helper import CpModelProto, IntVar, LinearExpr
from ortools.util.python.sorted_interval_list import (  # type: ignore[import-untyped]
    Domain,  # its stub is not marked as one
)

LinearExprT = LinearExpr | int
"""A sum of variables, or a number."""

__all__ = ["CpModel", "CpModelProto", "IntVar", "LinearExpr", "LinearExprT"]


class CpModel(binding.CpBaseModel):
    """Whole variables, linear constraints and one linear objective."""

    proto: CpModelProto
    """What CP-SAT gets."""

    def __init__(self) -> None:
        super().__init__(None)
        self.proto = self.model_proto

    def new_int_var(self, least: int, most: int, name: str) -> IntVar:
        """Add a variable, least <= value <= most; names may be empty or repeated."""
        return IntVar(self.proto).with_name(name).with_domain(Domain(least, most))

    def new_bool_var(self, name: str) -> IntVar:
        """Add a variable that is 0 or 1."""
        return self.new_int_var(0, 1, name)

    def get_int_var_from_proto_index(self, index: int) -> IntVar:
        """Return a variable that is there already, counted from 0."""
        return IntVar(self.proto, index)

    def add(self, comparison: Comparison | bool) -> None:  # `0 <= 1`
        """Add a constraint: a comparison of sums, or what one without variables said.

        Raises:
            TypeError: It is neither.
        """
        if isinstance(comparison, Comparison):
            self._add_bounded_linear_expression(comparison)  # type: ignore[attr-defined]
        elif self.is_boolean_value(comparison):
            self.add_bool_or([True] if comparison else [])
        else:
            msg = f"no constraint: {comparison!r}"
            raise TypeError(msg)

    def add_bool_or(self, literals: Sequence[binding.Literal | bool]) -> None:
        """Add that one of them holds; none of them: nothing does."""
        kind = binding.BoolArgumentConstraint.bool_or
        self._add_bool_argument_constraint(kind, *literals)  # type: ignore[attr-defined]

    def maximize(self, worth: LinearExprT) -> None:
        """Set the objective, in place of the last one.

        Raises:
            TypeError: It has fractions.
        """
        self._set_objective(worth, -1)

    def minimize(self, cost: LinearExprT) -> None:
        """Set the objective, in place of the last one.

        Raises:
            TypeError: It has fractions.
        """
        self._set_objective(cost, 1)

    def _set_objective(self, expression: LinearExprT, sign: int) -> None:
        """Minimize sign * expression; CP-SAT turns back what it reports."""
        self.proto.clear_objective()
        objective = self.proto.objective
        if isinstance(expression, int):
            objective.offset = expression
            objective.scaling_factor = 1.0
            return
        if not expression.is_integer():
            msg = f"an objective with fractions: {expression}"
            raise TypeError(msg)
        flat = binding.FlatIntExpr(expression)
        objective.scaling_factor = float(sign)
        objective.offset = sign * flat.offset
        objective.vars.extend([variable.index for variable in flat.vars])
        objective.coeffs.extend([sign * factor for factor in flat.coeffs])

    def add_hint(self, variable: IntVar, value: int) -> None:
        """Return which value a variable may have in a good solution."""
        self.proto.solution_hint.vars.append(variable.index)
        self.proto.solution_hint.values.append(value)

    def clear_hints(self) -> None:
        """Drop what was said so."""
        self.proto.clear_solution_hint()

    def validate(self) -> str:
        """Return what is wrong with the model; empty: nothing."""
        return binding.CpSatHelper.validate_model(self.proto)
