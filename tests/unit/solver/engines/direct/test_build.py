"""A model as built only says what is possible; what must be is added to it."""

from __future__ import annotations

import pytest

from solver.engines import cpsat
from solver.engines.direct.build import build, fix, require_all_gangs
from solver.engines.direct.variables import Placements
from tests.builders import member, member_claim, request
from tests.builders.models import maximise, model_of, solve_model, waiting_on

PAIR = member(member_claim(request(count=2)))


def built(devices: int) -> Placements:
    """Build the model of two gangs of a pair on one node."""
    made = model_of(waiting_on({"n": devices}, [PAIR], [PAIR]))
    return build(made.demand, made.nodes)


def test_a_model_as_built_may_leave_gangs_out() -> None:
    """Of two gangs one fits, and that is an answer."""
    placements = built(3)
    (gangs_in,) = placements.gangs.values()
    assert maximise(placements, gangs_in).value_reached == 1


@pytest.mark.parametrize(
    ("devices", "outcome"), [(4, cpsat.Solved), (3, cpsat.Infeasible)]
)
def test_all_gangs_are_in_where_they_are_required(
    devices: int, outcome: type[cpsat.Outcome]
) -> None:
    """Gangs that fit one by one but not together make the model infeasible."""
    placements = built(devices)
    require_all_gangs(placements)
    assert isinstance(solve_model(placements), outcome)


@pytest.mark.parametrize("value", [0, 1, 2])
def test_a_fixed_variable_has_that_value(value: int) -> None:
    """Whatever would be better or worse."""
    placements = built(4)
    (gangs_in,) = placements.gangs.values()
    fix(placements, gangs_in, value)
    assert maximise(placements, gangs_in).value(gangs_in) == value
    assert maximise(placements, -gangs_in).value(gangs_in) == value
