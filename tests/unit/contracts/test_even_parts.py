"""Pods are divided evenly, over few domains."""

from __future__ import annotations

import pytest

from contracts.even_parts import find_even_parts, list_even_parts


def test_the_fewest_parts_come_first() -> None:
    assert list(list_even_parts(12)) == [
        (1, 12),
        (2, 6),
        (3, 4),
        (4, 3),
        (6, 2),
        (12, 1),
    ]
    assert list(list_even_parts(5)) == [(1, 5), (5, 1)]
    assert list(list_even_parts(0)) == []


@pytest.mark.parametrize(
    ("pods", "rooms", "most", "found"),
    [
        (12, (18, 3), None, (1, 12, 1)),
        (24, (18, 18, 18), None, (2, 12, 2)),
        (24, (18, 18, 18), 11, (3, 8, 3)),
        (25, (18, 18), None, (5, 5, 2)),
        (7, (6, 6), None, (7, 1, 2)),
        (6, (), None, (1, 6, 0)),
        (6, (4,), None, (2, 3, 1)),
    ],
)
def test_the_nearest_division_has_places_for_most_pods(
    pods: int, rooms: tuple[int, ...], most: int | None, found: tuple[int, int, int]
) -> None:
    way = find_even_parts(pods, rooms, most)
    assert (way.parts, way.size, way.found) == found
