"""Selectors of v1alpha2, said in v1, choose the same devices."""

from __future__ import annotations

import pytest

from contracts.alpha.selectors import (
    SelectorError,
    rename_attribute,
    translate_selector,
)

DRIVER = "cats.example.com"
ATTRIBUTES = f'device.attributes["{DRIVER}"]'
CAPACITY = f'device.capacity["{DRIVER}"]'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("true", ""),
        ('attributes.string["color"] == "black"', f'{ATTRIBUTES}.color == "black"'),
        ("attributes.string['color'] == 'x'", f"{ATTRIBUTES}.color == 'x'"),
        ('attributes.int[ "age" ]>2', f"{ATTRIBUTES}.age>2"),
        ("attributes.bool.tame", f"{ATTRIBUTES}.tame"),
        (
            'attributes.quantity["a"].isLessThan(x) && attributes.intslice["b"].sum()',
            f"{CAPACITY}.a.isLessThan(x) && {ATTRIBUTES}.b.sum()",
        ),
        ('"color" in attributes.string', f'"color" in {ATTRIBUTES}'),
        ("!('a.b' in attributes.quantity)", f'!("a_b" in {CAPACITY})'),
        (
            'attributes.string["born-in.year"] == "1"',
            f'{ATTRIBUTES}.born_in_year == "1"',
        ),
        (
            'attributes.string["a"] == "attributes.int[\\"b\\"]" // attributes.int',
            f'{ATTRIBUTES}.a == "attributes.int[\\"b\\"]" // attributes.int',
        ),
        (
            'semver("1.0.0") == attributes.version["v"]',
            f'semver("1.0.0") == {ATTRIBUTES}.v',
        ),
    ],
)
def test_maps_of_types_become_those_of_the_driver(old: str, new: str) -> None:
    """Only what refers to a map changes; texts and comments are left as they are."""
    assert translate_selector(old, DRIVER) == new


@pytest.mark.parametrize(
    "old",
    [
        'attributes["color"] == "black"',
        'attributes.float["a"] > 1',
        "attributes.string.all(k, k != '')",
        'attributes.string[name] == "a"',
        "size(attributes.string) == 1",
        "x in attributes.string",
        'attributes.string["' + "a" * 33 + '"] == "b"',
    ],
)
def test_what_v1_has_no_form_of_is_refused(old: str) -> None:
    """A yes is never given to what was not understood."""
    with pytest.raises(SelectorError):
        translate_selector(old, DRIVER)


def test_attributes_get_names_that_v1_takes() -> None:
    """v1 takes C identifiers."""
    assert rename_attribute("a.b-c") == "a_b_c"
    assert rename_attribute("4k") == "_4k"
