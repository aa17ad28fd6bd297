"""Which domain each part goes to, by shares alone."""

from __future__ import annotations

from solver.engines.domains.packing import WHOLE, ItemKind, Packing


def kind(count: int, sixteenths: int, domains: int, worth: int = 1) -> ItemKind:
    """Make parts that take so many sixteenths of any domain."""
    return ItemKind(count, worth, (WHOLE * sixteenths // 16,) * domains)


def packed(*kinds: ItemKind, work_limit: float = 1.0) -> list[dict[int, int]]:
    found = Packing(kinds, work_limit=work_limit, seed=1).run()
    return [dict(+inside) for inside in found]


def test_the_fullest_domain_that_takes_a_part_gets_it() -> None:
    """Large parts go first; small ones fill what they leave."""
    assert packed(kind(2, 4, 2), kind(1, 12, 2)) == [{1: 1, 0: 1}, {0: 1}]


def test_parts_that_the_largest_first_leaves_out_are_packed_anew() -> None:
    """8 + 4 + 4 and 6 + 5 + 5 fill two domains; 8 + 6 is what comes first."""
    kinds = (kind(1, 8, 2), kind(1, 6, 2), kind(2, 5, 2), kind(2, 4, 2))
    first = packed(*kinds, work_limit=0)
    assert sum(sum(inside.values()) for inside in first) == 5
    assert sorted(map(sorted, packed(*kinds))) == [[0, 3], [1, 2]]


def test_what_is_worth_most_is_in_where_not_all_is() -> None:
    """Three halves and one domain."""
    assert packed(kind(2, 8, 1, worth=1), kind(1, 16, 1, worth=3)) == [{1: 1}]


def test_a_part_is_never_where_it_cannot_be() -> None:
    """It takes more than all of the first domain."""
    assert packed(ItemKind(2, 1, (WHOLE + 1, WHOLE // 2))) == [{}, {0: 2}]


def test_the_same_parts_are_packed_the_same_way() -> None:
    """Whatever is drawn depends on the seed alone."""
    kinds = [kind(7, size, 9) for size in (5, 6, 7, 8)]
    assert packed(*kinds) == packed(*kinds)
