"""The best pattern of a node at given prices."""

from __future__ import annotations

import random

import pytest

from solver.engines.pattern.columns.pricing import EMPTY, MAX_VALUE, Prices
from solver.engines.pattern.states.steps import PartialSteps
from solver.errors import PriceOverflowError
from tests.builders import gang, member, member_claim, request, sub_request
from tests.builders.patterns import nodes_of_sizes, pattern_model

SINGLES_AND_TRIPLES = gang(
    member(name="single", count=9),
    member(member_claim(request(count=3)), name="triple", count=9),
)


def test_a_node_takes_what_earns_most() -> None:
    """On four devices: four single pods, or one triple with a single one."""
    pricing = pattern_model(nodes_of_sizes(4), SINGLES_AND_TRIPLES).pricing
    (earned,), (pattern,) = pricing.find_best(Prices((2, 5)))
    assert (earned, pattern.counts) == (8, ((0, 4),))
    (earned,), (pattern,) = pricing.find_best(Prices((2, 7)))
    assert (earned, pattern.counts) == (9, ((0, 1), (1, 1)))


def test_a_node_stays_empty_where_pods_do_not_earn_what_it_costs() -> None:
    """Then it earns nothing, not less."""
    pricing = pattern_model(nodes_of_sizes(4), SINGLES_AND_TRIPLES).pricing
    (earned,), (pattern,) = pricing.find_best(Prices((2, 5), touched=8))
    assert (earned, pattern) == (0, EMPTY)
    (earned,), (pattern,) = pricing.find_best(Prices((2, 5), touched=7))
    assert (earned, pattern.counts) == (1, ((0, 4),))


def test_a_rank_costs_its_price() -> None:
    """The second choice of a pod is taken only where the first is not to be had."""
    either = request(
        first_available=[
            sub_request("two", count=2),
            sub_request("one"),
        ]
    )
    pods = gang(member(member_claim(either), count=9))
    pricing = pattern_model(nodes_of_sizes(3), pods).pricing
    (earned,), (pattern,) = pricing.find_best(Prices((10,)))
    assert (earned, pattern.rank) == (30, 3)
    (earned,), (pattern,) = pricing.find_best(Prices((10,), rank=6))
    assert (earned, pattern.counts, pattern.rank) == (14, ((0, 2),), 1)


def test_prices_whose_sums_could_leave_64_bits_are_refused() -> None:
    """A bound that overflowed would be none."""
    pricing = pattern_model(nodes_of_sizes(1), gang()).pricing
    with pytest.raises(PriceOverflowError):
        pricing.find_best(Prices((MAX_VALUE,)))


def test_equal_steps_are_one_pattern() -> None:
    """So an answer and a pool speak of the same."""
    pricing = pattern_model(nodes_of_sizes(2), gang(member(count=2))).pricing
    (_,), (first,) = pricing.find_best(Prices((1,)))
    assert pricing.to_pattern(first.steps) is first
    assert pricing.to_pattern(()) is EMPTY


def test_equal_pods_of_patterns_are_one_object() -> None:
    """Patterns are of one class each, and those of many classes have the same pods."""
    triples = gang(member(member_claim(request(count=3)), count=9))
    pricing = pattern_model(nodes_of_sizes(4, 5), triples).pricing
    _, (smaller, larger) = pricing.find_best(Prices((1,)))
    assert smaller.steps != larger.steps
    assert smaller.counts is larger.counts


@pytest.mark.parametrize("resource_slack", [False, True])
def test_some_classes_alone_earn_what_they_do_among_all(resource_slack: bool) -> None:
    """The same patterns, too, whatever the prices are."""
    draw = random.Random(3)
    pods = gang(
        member(name="single", count=9),
        member(member_claim(request(count=2)), name="pair", count=9),
        member(member_claim(request(count=3)), name="triple", count=9),
    )
    expected = [member(member_claim(request(count=4)))] if resource_slack else []
    model = pattern_model(nodes_of_sizes(4, 7, 5, 9, 6), pods, expected=expected)
    classes = range(len(model.data.sizes))
    for _ in range(50):
        owners = sorted(draw.sample(classes, draw.randint(1, len(classes))))
        prices = Prices(
            tuple(draw.randint(0, 9) for _ in range(3)),
            slack=draw.randint(0, 3),
            touched=draw.randint(0, 5),
        )
        earned, patterns = model.pricing.find_best(prices)
        some_earned, some = model.pricing.among(owners).find_best(prices)
        assert some_earned.tolist() == [earned[owner] for owner in owners]
        assert some == [patterns[owner] for owner in owners]


def test_what_no_class_comes_to_is_left_out() -> None:
    """The states of a small node are few of those of a large one."""
    steps = pattern_model(nodes_of_sizes(2, 9), SINGLES_AND_TRIPLES).steps
    small = PartialSteps(steps, [0])
    assert len(small.points) == 3
    assert len(small.steps) < len(steps.member)
    assert len(PartialSteps(steps, [0, 1]).steps) == len(steps.member)
