"""What expressions may cost at most, before they run."""

from __future__ import annotations

from typing import Any

import pytest

from solver.cel.checked import CheckedExpression
from solver.cel.engine import Engine
from solver.cel.price import MAX_PRICE, price
from tests.cases.prices import CHEAP, DEAR, doubled, nested
from tests.cases.selectors import DRIVER

UUID = f'device.attributes["{DRIVER}"].uuid'


def priced(expression: str) -> int:
    compiled: Any = Engine().prepare(expression)
    return price(CheckedExpression.read(compiled.serialize()))


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ('device.driver == "x"', 2),
        (f'{UUID} == "x"', 4),
        ("device.allowMultipleAllocations && true", 1),
        # A tenth for each of the 64 characters that it may have, rounded up.
        (f"{UUID}.lowerAscii().size() > 0", 3 + 7 + 1 + 1),
        (f'{UUID}.contains("abcdefghijklmnopqrst")', 3 + 7 * 2),
        (f'{UUID}.matches("a.*z")', 3 + 7 * 1),
        # A list costs 10, and the step as often as there are elements.
        ("[1, 2, 3].exists(x, x == 2)", 10 + 1 + 3 * (1 + 3 + 1)),
        ("1 in [1, 2, 3]", 10 + 3),
        ('cel.bind(x, "aaaaaaaaaaaaaaaaaaaa", x + x == "")', 10 + 1 + 1 + 4 + 1),
    ],
)
def test_sizes_are_followed_from_what_a_device_may_hold(
    expression: str, cost: int
) -> None:
    """Within a few units, which macros take in one engine and not in the other."""
    assert abs(priced(expression) - cost) <= 10


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("cel.bind(m, device.attributes, m['d'].x == 1)", "device.attributes.d.x == 1"),
        ("cel.bind(d, device, d.driver == 'x')", "device.driver == 'x'"),
        ("1" + "+1" * 60 + " == 1", "1" + "+1" * 20 + " == 1"),
    ],
)
def test_what_is_written_for_the_engine_alone_costs_nothing(
    written: str, plain: str
) -> None:
    """A longer sum costs its own additions, one each."""
    more = written.count("+") - plain.count("+")
    assert priced(written) <= priced(plain) + more


def test_what_is_inserted_into_a_map_is_as_large_as_it_may_be() -> None:
    """Whoever goes through it pays for its entries, keys and values."""
    made = f'device.attributes["{DRIVER}"].transformMap(k, v, v)'
    whole = f'device.attributes["{DRIVER}"]'
    each = ".all(k, v, k + v != '')"
    assert priced(made + each) > priced(whole + each)
    assert priced(f"{made}.transformMap(k, v, v).size() > 0") <= MAX_PRICE / 100
    few = "[1].transformMapEntry(i, v, {'a': v}).all(k, v, true)"
    assert priced(few) < 200


def test_each_doubling_costs_twice_as_much() -> None:
    """And each level of a comprehension ten times as much."""
    costs = [priced(doubled(count, 0)) for count in (10, 11, 12)]
    assert 1.9 < costs[1] / costs[0] < 2.1
    assert 1.9 < costs[2] / costs[1] < 2.1
    assert 8 < priced(nested(4)) / priced(nested(3)) < 12


@pytest.mark.parametrize("name", CHEAP)
def test_ordinary_expressions_stay_far_below_the_limit(name: str) -> None:
    assert priced(CHEAP[name]) <= MAX_PRICE / 10


@pytest.mark.parametrize("name", DEAR)
def test_dear_expressions_are_no_selectors(name: str) -> None:
    verdict = Engine().prepare(DEAR[name])
    assert verdict.error.startswith("CEL compile error: too complex: estimated cost")
