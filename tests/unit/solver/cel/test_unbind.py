"""Names for the device and its maps are replaced, and no others."""

from __future__ import annotations

import pytest

from solver.cel.unbind import is_named, unbind
from solver.selectors.tokens import tokens_of

A = "device.attributes"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (f"cel.bind(m, {A}, m.d + m['d'])", f"({A}.d + {A}['d'])"),
        (
            "true || cel.bind(d, device, d.driver == x.d)",
            "true || (device.driver == x.d)",
        ),
        ("cel.bind(d, device, x.?d + d(1) + d)", "(x.?d + d(1) + device)"),
        (f"cel.bind(m, {A}, {{m: 'm'}})", f"({{{A}: 'm'}})"),
        (
            "cel.bind(d, device, cel.bind(m, d.capacity, m.x))",
            "((device.capacity.x))",
        ),
        (f"[1].all(m, cel.bind(n, {A}, n[m]))", f"[1].all(m, ({A}[m]))"),
        (f"cel.bind(m, {A}, f(m, m))", f"(f({A}, {A}))"),
    ],
)
def test_a_name_is_replaced_by_what_it_stands_for(written: str, expected: str) -> None:
    assert unbind(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        "cel.bind(m, {}, m.x)",
        f"cel.bind(m, {A}.d, m.x)",
        f"cel.bind(m, {A}, [1].all(m, m > 0) && m.x)",
        f"cel.bind(m, {A}, x.exists(k, m, m > 0))",
        f"cel.bind(m, {A}, cel.bind(m, 1, m))",
        f"cel.bind(m, {A}, [1].all(device, m.x))",
        f"cel.bind(m, {A}, )",
        f"cel.bind(m, {A}, m",
        f"cel.bind(m, {A})",
        f"'cel.bind(m, {A}, m)'",
    ],
)
def test_what_is_named_otherwise_stays(written: str) -> None:
    """Also where the name is given once more, to something else."""
    assert unbind(written) == written


def test_many_names_cost_no_more_than_some() -> None:
    """Each takes reading the expression again."""
    assert unbind("cel.bind(d, device, d) + " * 100 + "1").count("bind") == 68


def test_a_name_is_one_where_a_macro_gives_it() -> None:
    def named(expression: str) -> bool:
        tokens = tokens_of(expression)
        assert tokens is not None
        return is_named(tokens, "x")

    assert named("[1].all(x, true)")
    assert named("[1].all(i, x, true)")
    assert not named("f(x, 1) + [1, x, 2].map(i, x)")
