"""Models are the messages that OR-Tools' own module makes, and need no pandas."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from ortools.sat.python import cp_model as peer

from solver.engines import cp_model
from solver.engines.cpsat import total


def fill(model: Any, seed: int) -> None:
    """Use everything that engines use, the same way for the same seed."""
    draw = random.Random(seed)
    variables = [
        model.new_int_var(0, draw.randint(0, 9), draw.choice(["", f"x[{i}]"]))
        for i in range(12)
    ]
    switches = [model.new_bool_var(f"on[{i}]") for i in range(4)]
    for _ in range(20):
        chosen = draw.choices([*variables, *switches], k=draw.randint(0, 5))
        terms = [(variable, draw.randint(-3, 3)) for variable in chosen]
        limit = draw.randint(-5, 20)
        match draw.randint(0, 4):
            case 0:
                model.add(total(terms) <= limit)
            case 1:
                model.add(total(terms) == limit * draw.choice(switches))
            case 2:
                model.add(sum(chosen) >= limit)
            case 3:
                model.add(variables[0] - draw.choice(variables) + 3 <= total(terms))
            case _:
                model.add_bool_or([~switches[0], *switches[1 : draw.randint(1, 4)]])
    model.minimize(total([(switches[0], 2)]))
    gain = total([(variable, draw.randint(-9, 9)) for variable in variables])
    match draw.randint(0, 4):
        case 0:
            model.maximize(gain)
        case 1:
            model.minimize(2 * gain - 7)
        case 2:
            model.maximize(-gain + 4)
        case 3:
            model.maximize(total([]) + draw.choice([0, 3]))
        case _:
            model.minimize(draw.choice([0, 5]))
    for variable in variables:
        model.add_hint(variable, draw.randint(0, 3))
    if draw.random() < 0.5:
        model.clear_hints()
        model.add_hint(model.get_int_var_from_proto_index(3), 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_model_is_the_message_that_ortools_makes_of_the_same_calls(seed: int) -> None:
    """Empty sums and constant objectives too."""
    ours, theirs = cp_model.CpModel(), peer.CpModel()
    fill(ours, seed)
    fill(theirs, seed)
    assert str(ours.proto) == str(theirs.proto)
    assert ours.validate() == theirs.validate()


def test_what_is_no_constraint_is_refused() -> None:
    model = cp_model.CpModel()
    with pytest.raises(TypeError, match="no constraint"):
        model.add("x <= 1")  # type: ignore[arg-type]  # that is what is tested


def test_an_objective_with_fractions_is_refused() -> None:
    """Its value would be rounded where it is read."""
    model = cp_model.CpModel()
    with pytest.raises(TypeError, match="fractions"):
        model.maximize(0.5 * model.new_bool_var("x"))


def test_whoever_decides_does_not_import_pandas() -> None:
    """In a fresh interpreter; nor do GLOP and the patterns need it."""
    program = "import sys, solver.allocate; print('pandas' in sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
