"""Which node resources are counted, and that levels err on the side they should."""

from __future__ import annotations

from itertools import product

import pytest

from solver.engines.pattern.states.resources import (
    LimitedResource,
    find_limited_resources,
    find_scarce_resources,
    to_levels,
)


@pytest.mark.parametrize(
    ("free", "need", "is_scarce"),
    [(11, 4, True), (12, 4, False), (None, 4, False), (11, 0, False)],
)
def test_a_resource_is_scarce_where_devices_could_use_more_than_is_left(
    free: int | None, need: int, is_scarce: bool
) -> None:
    """Devices that could use 12 run out at 11; what nobody asks for is never scarce."""
    caps = {0: (12, 8)}
    scarce = find_scarce_resources([(free,)], [0], [(need,), (0,)], caps.__getitem__)
    assert bool(scarce) is is_scarce


def test_a_level_is_what_divides_every_need() -> None:
    """Pods that ask for 4 and 6 count in twos, each resource by itself."""
    scarce = find_scarce_resources(
        [(5, 5)], [0], [(4, 3), (6, 3)], lambda index: (10 + index,)
    )
    assert scarce == [LimitedResource(0, 2, (10,)), LimitedResource(1, 3, (11,))]


def test_every_limit_counts_where_room_has_a_value() -> None:
    """The cap is more than any node has: it stands for no limit."""
    limited = find_limited_resources([(5, None), (9, None)], 2, [(4, 1), (6, 1)])
    assert limited == [LimitedResource(0, 2, (10, 10))]


@pytest.mark.parametrize("coarseness", [1, 2, 3, 5])
def test_rounding_up_promises_too_little_and_down_too_much(coarseness: int) -> None:
    """What fits in levels rounded up fits, and what fits does so rounded down."""
    resource = LimitedResource(0, 2, (1000,))
    for free, need, pods in product(range(40), (2, 4, 6, 10), range(1, 6)):
        fits = [
            levels.needs[0][0] * pods <= levels.starts[0][0]
            for levels in (
                to_levels(
                    [resource],
                    [(free,)],
                    [0],
                    [(need,)],
                    coarseness=coarseness,
                    round_up=round_up,
                    cap_is_endless=False,
                )
                for round_up in (True, False)
            )
        ]
        safe, hopeful = fits
        truly = need * pods <= free
        assert safe <= truly <= hopeful
        assert coarseness > 1 or safe == truly == hopeful


def test_a_node_starts_with_no_more_than_its_state_can_use() -> None:
    """Plenty and no limit at all are one start."""
    levels = to_levels(
        [LimitedResource(0, 2, (12, 6))],
        [(100,), (None,), (5,), (100,)],
        [0, 0, 0, 1],
        [(4,)],
        coarseness=1,
        round_up=True,
        cap_is_endless=False,
    )
    assert levels.starts == ((6,), (6,), (2,), (3,))
    assert levels.caps == ((6, 3),)
