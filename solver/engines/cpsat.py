"""The only calls of CP-SAT: a model and parameters in, one outcome a status out.

One worker, a fixed seed and a limit in deterministic time: the outcome depends on
the model alone, never on the machine's speed. Values exist only where CP-SAT has a
solution; in every other status it would hand back garbage without an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf

from msgspec import Struct
from ortools.sat.python import cp_model_helper as binding

from solver.engines import cp_model
from solver.errors import ModelInvalidError
from solver.stages import stage
from solver.stopping import calling, is_stopped

IntVar = cp_model.IntVar
Term = tuple[IntVar, int]
"""A variable and its coefficient."""


def total(terms: Sequence[Term]) -> cp_model.LinearExprT:
    """Add terms up; equal variables are merged by CP-SAT."""
    return cp_model.LinearExpr.weighted_sum(
        [variable for variable, _ in terms], [factor for _, factor in terms]
    )


class Solved(Struct, frozen=True):
    """A solution, proven best or not."""

    values: Sequence[int]
    """By variable index."""
    optimal: bool
    value_reached: int
    """Of the objective; 0 without one."""
    bound: float
    """What no solution exceeds; equal to the value when optimal."""
    work: float
    """Deterministic time spent."""

    @property
    def whole_bound(self) -> int:
        """The bound of a whole objective."""
        return self.value_reached if self.optimal else floor(self.bound + 1e-6)

    def value(self, variable: cp_model.IntVar) -> int:
        """Read a variable."""
        return self.values[variable.index]


class Infeasible(Struct, frozen=True):
    """Proven to have no solution."""

    work: float


class Unknown(Struct, frozen=True):
    """The limit came first, or the caller: neither a solution nor a proof."""

    work: float
    bound: float


Outcome = Solved | Infeasible | Unknown


def solve(
    model: cp_model.CpModel,
    *,
    work_limit: float,
    seed: int,
    feasibility: bool,
    presolve: bool = True,
) -> Outcome:
    """Solve a model.

    `work_limit` is CP-SAT's deterministic time. `feasibility` says that any solution
    will do, which prefers parameters that find one soon. Without `presolve` models of a
    few long rows, of which it makes nothing, are solved several times as fast. Once
    searches are to end (`solver.stopping`) nothing is solved any more, and what is
    being solved gives what it has.

    Raises:
        ModelInvalidError: CP-SAT refused the model.
    """
    if is_stopped():
        return Unknown(0.0, inf)
    parameters = binding.SatParameters()
    parameters.num_workers = 1
    parameters.random_seed = seed
    parameters.max_deterministic_time = max(work_limit, 1e-3)
    parameters.catch_sigint_signal = False  # it would take Ctrl-C from the process
    parameters.cp_model_probing_level = 0
    parameters.symmetry_level = 0
    parameters.cp_model_presolve = presolve
    parameters.linearization_level = 1 if feasibility else 2
    solver = binding.SolveWrapper()
    solver.set_parameters(parameters)
    with stage("solve"), calling(solver.stop_search):
        response = solver.solve(model.proto)  # type: ignore[no-untyped-call]
    work, bound = response.deterministic_time, response.best_objective_bound
    status = response.status
    if status in (binding.OPTIMAL, binding.FEASIBLE):
        optimal = status == binding.OPTIMAL
        value = round(response.objective_value)
        return Solved(tuple(response.solution), optimal, value, bound, work)
    if status == binding.INFEASIBLE:
        return Infeasible(work)
    if status == binding.MODEL_INVALID:
        raise ModelInvalidError(model.validate())
    return Unknown(work, bound)
