"""What an expression reads: never less than it can see."""

from __future__ import annotations

import pytest

from solver.selectors.footprint import EVERYTHING, NOTHING, Footprint, footprint_of

A = 'device.attributes["d.io"]'
C = 'device.capacity["d.io"]'


@pytest.mark.parametrize(
    "expression",
    [
        f"{A}.x == 1",
        f'{A}["x"] == 1',
        f"{A}.?x.orValue(1) == 1",
        f'{A}[?"x"].hasValue()',
        'device.attributes[?"d.io"].?x.hasValue()',
        f"has({A}.x)",
        f'"x" in {A}',
        f'!("x" in {A})',
        f'true && "x" in {A} && false',
        "device . attributes\n[ 'd.io' ] // comment\n . x",
        f".{A}.x",
        f"{A}.x.size() == 1",
        f"{A}.x[0] == 1",
        'device.attributes[r"d.io"].x',
        'device.attributes["""d.io"""].x',
        f"{A}.x == r'\\' && '\\'' == ''",
    ],
)
def test_a_named_attribute_is_all_that_is_read(expression: str) -> None:
    """Whatever else the device has does not matter."""
    assert footprint_of(expression) == Footprint(attributes=(("d.io", "x"),))


@pytest.mark.parametrize(
    "expression",
    [
        f"{A}.size() == 1",
        f"{A}.exists(k, k == 'x')",
        f"cel.bind(a, {A}, a.x == 1)",
        f"{A} == {{}}",
        f'1 + "x" in {A}',
        f'"a" == "x" in {A}',
        f"name in {A}",
        f'"d.io" in {A}["x"] || size({A}) == 1',
        f"{A}[name] == 1",
        f"{A}.`x` == 1",
        '"d.io" in device.attributes',
    ],
)
def test_a_domain_as_a_whole_is_read_as_a_whole(expression: str) -> None:
    """Where no attribute is named, all of the domain may be."""
    assert ("d.io", "") in footprint_of(expression).attributes
    assert not footprint_of(expression).everything


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes.exists(d, d == 'd.io')",
        "device.attributes.size() == 1",
        "device.attributes[device.driver].x == 1",
        'device.attributes["a" + "b"].x == 1',
        'device.attributes["\\x64.io"].x == 1',
        "device.attributes == {}",
        "name in device.attributes",
        'device.attributes[""].x == 1',
        "cel.bind(d, device, d.driver == '')",
        "[device]",
        'device["driver"] == ""',
        "'unterminated",
        "device.attributes",
        "device.",
        "device",
        "device.attributes[",
        'device.attributes[?"d.io"',
        "@",
    ],
)
def test_what_is_not_understood_reads_everything(expression: str) -> None:
    """A footprint may be too large, never too small."""
    assert footprint_of(expression) in (
        EVERYTHING,
        Footprint(attributes=(("d.io", ""),)),
    )


def test_capacity_driver_and_sharing_are_told_apart() -> None:
    """Each is read only by who names it."""
    assert footprint_of(f"{C}.x.isInteger()") == Footprint(capacity=(("d.io", "x"),))
    assert footprint_of("device.driver == 'a'") == NOTHING
    assert footprint_of("device.allowMultipleAllocations") == Footprint(multiple=True)


def test_words_in_texts_and_comments_are_not_read() -> None:
    """A text about a device reads none."""
    assert footprint_of(f"'{C}.x' == '' // {C}.y") == NOTHING
    assert (
        footprint_of("'''device''' == \"\"\"device\"\"\" || b'device' == b''")
        == NOTHING
    )


def test_names_are_sorted_and_counted_once() -> None:
    """Equal footprints are equal."""
    assert footprint_of(f"{A}.b == {A}.a && {A}.b == 1").attributes == (
        ("d.io", "a"),
        ("d.io", "b"),
    )


def test_a_text_beyond_the_limit_is_not_looked_at() -> None:
    """It is refused whatever the device, so all devices look alike."""
    assert footprint_of("device.attributes.exists(d, true)" + " " * 10_240) == NOTHING
    assert footprint_of("'" + "é" * 5_200 + "' == device.attributes") == NOTHING
