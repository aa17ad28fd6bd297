"""Values become numbers by what has them, not by what they are."""

from __future__ import annotations

from solver.kinds.grouping import AlikeDevices, number_values


def groups(*values: object, profile: tuple[int, int] = (1, 1)) -> list[AlikeDevices]:
    """Make groups of one device each with one value in one column."""
    return [AlikeDevices((frozenset({("int", v)}),), profile) for v in values]


def test_nodes_that_differ_in_the_values_alone_get_equal_numbers() -> None:
    """Unique ids do not split kinds of node."""
    one = number_values(["id"], groups(7, 7, 9))
    other = number_values(["id"], groups("x", "x", "a"))
    assert one == other
    assert one[0] == one[1] != one[2]


def test_values_of_one_attribute_are_numbered_together() -> None:
    """Two columns of one attribute give an equal value an equal number."""
    value = frozenset({("int", 1)})
    made = [AlikeDevices((value, value), (1, 1))]
    ((first, second),) = number_values(["id", "id"], made)
    assert first == second


def test_a_device_without_the_attribute_has_no_number() -> None:
    """No value is equal to nothing, not to another device that lacks it."""
    made = [AlikeDevices((frozenset(),), (1, 1)), *groups(3)]
    assert number_values(["id"], made) == [((),), ((1,),)]


def test_a_list_has_the_numbers_of_its_elements_ascending() -> None:
    """So that two lists are compared element by element."""
    both = AlikeDevices((frozenset({("int", 1), ("int", 2)}),), (2, 1))
    (list_numbers,), *_ = number_values(["id"], [both, *groups(2)])
    assert list_numbers == tuple(sorted(list_numbers))
    assert len(list_numbers) == 2
