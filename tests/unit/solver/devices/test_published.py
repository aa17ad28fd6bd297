"""An attribute has the name that a driver gives it, with or without its domain."""

from __future__ import annotations

from solver.devices.published import find_published, list_published, names_of
from tests.builders import DRIVER, attribute, device


def test_a_bare_name_is_of_the_drivers_own_domain() -> None:
    """The full name wins; another domain has no bare names."""
    bare = device(attributes={"x": 1})
    both = device(attributes={"x": 1, f"{DRIVER}/x": 2})
    assert find_published(bare, DRIVER, f"{DRIVER}/x") == attribute(1)
    assert find_published(both, DRIVER, f"{DRIVER}/x") == attribute(2)
    assert find_published(bare, DRIVER, "other.io/x") is None
    assert find_published(bare, DRIVER, "x") == attribute(1)


def test_several_devices_are_read_as_each_of_them() -> None:
    """Those that publish the full name, the bare one, both or neither."""
    devices = [
        device(attributes=attributes)
        for attributes in ({"x": 1}, {f"{DRIVER}/x": 2}, {"x": 1, f"{DRIVER}/x": 2}, {})
    ]
    for name in (f"{DRIVER}/x", "x", "other.io/x"):
        expected = [find_published(each, DRIVER, name) for each in devices]
        assert list_published(devices, DRIVER, name) == expected
    assert len(set(map(str, list_published(devices, DRIVER, f"{DRIVER}/x")))) == 3


def test_a_bare_name_stands_for_nothing_else() -> None:
    """It is asked for in whatever domain a driver has, and never cut."""
    assert names_of(DRIVER, "x") == ("x",)
    assert names_of("x", "x") == ("x",)
    assert names_of(DRIVER, f"{DRIVER}/x") == (f"{DRIVER}/x", "x")
