"""Fleets by name, each with a DeviceClass for every driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.errors import LocalStackError
from moorings.local.fleets import FLEETS, find_fleet, make_classes


@pytest.mark.parametrize("file", sorted(FLEETS.glob("*.yaml")), ids=lambda f: f.stem)
def test_our_fleets_have_classes_named_after_their_drivers(file: Path) -> None:
    assert find_fleet(file.stem) == file
    for device_class in make_classes(file):
        (selector,) = device_class.spec.selectors
        assert selector.cel is not None
        assert f'"{device_class.metadata.name}"' in selector.cel.expression


def test_a_file_of_ones_own_is_a_fleet(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.touch()
    assert find_fleet(str(file)) == file


def test_the_names_of_ours_are_said() -> None:
    with pytest.raises(
        LocalStackError, match="the shipped fleets are faulty, openb, small"
    ):
        find_fleet("nope")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    file = tmp_path / "gang.yaml"
    file.write_text("apiVersion: moorings.dev/v1alpha1\nkind: Gang\nmetadata: {}\n")
    with pytest.raises(LocalStackError, match="must be a Fleet, and is a Gang"):
        find_fleet(str(file))
