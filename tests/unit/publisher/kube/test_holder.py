from __future__ import annotations

import pytest

from publisher.kube.holder import HolderProcess, name_holder, read_holder

PROCESS = HolderProcess("af", 7, "99", "c0")


def test_an_identity_names_its_process() -> None:
    assert read_holder(PROCESS.add_to("up-host-1-abc")) == PROCESS


@pytest.mark.parametrize(
    "other", ["", "up-host-1-abc", "host_5d1f1c4e-0c0e", "a_b.c.d.e", "a_b.-1.d.e"]
)
def test_other_identities_name_none(other: str) -> None:
    assert read_holder(other) is None
    assert name_holder(other) == other


def test_people_are_shown_a_holder_without_its_process() -> None:
    assert name_holder(PROCESS.add_to("up-host_a-1-abc")) == "up-host_a-1-abc"
