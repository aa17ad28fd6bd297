"""The release of a cluster, from its API server to the bus and back."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.release import make_release, read_release, release_of


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ({"major": "1", "minor": "37", "gitVersion": "v1.37.1"}, "1.37"),
        ({"major": "1", "minor": "34+"}, "1.34"),
        (
            {
                "major": "1",
                "minor": "37",
                "emulationMajor": "1",
                "emulationMinor": "35",
            },
            "1.35",
        ),
        ({"major": "1"}, ""),
        ({"major": 1, "minor": None}, ""),
        ({}, ""),
    ],
)
def test_the_release_is_the_one_whose_gates_count(
    version: dict[str, Any], release: str
) -> None:
    """Providers add signs; who emulates an older release has its gates."""
    assert release_of(version) == release


def test_what_is_said_is_read() -> None:
    assert read_release(make_release("1.36")) == "1.36"


@pytest.mark.parametrize("release", [None, 1.36, "", "v1.36", "1.36; rm", "newest"])
def test_what_is_no_release_is_refused(release: object) -> None:
    """It comes over the bus, where anybody with its password may write."""
    with pytest.raises(DecodeError, match="Expected a release"):
        read_release({"release": release})
