"""Feature gates: defaults by release, changes by name."""

from __future__ import annotations

import pytest

from contracts.features import (
    GATES,
    FeatureError,
    Features,
    default_gates,
    features_of,
    read_gates,
)


def test_the_defaults_are_those_of_the_newest_release() -> None:
    """With or without a leading v."""
    assert features_of("1.37") == features_of("v1.37") == Features()
    for printed in ("1.35.2", "v1.35.2", "v1.35.2-gke.7", "v1.35.2+k3s1"):
        assert features_of(printed) == features_of("1.35")


def test_older_releases_can_do_less() -> None:
    """A feature has the default of its release."""
    old, newer = features_of("1.35"), features_of("1.36")
    assert (old.partitionable_devices, newer.partitionable_devices) == (False, True)
    assert not newer.fractional_capacity_range
    assert not newer.device_taint_rules


def test_an_unknown_release_is_as_the_nearest() -> None:
    assert features_of("1.99") == features_of("v1.38.0-beta.0") == features_of("1.38")
    assert features_of("1.20") == features_of("1.32")


def test_a_newer_release_has_rules_that_no_gate_switches() -> None:
    assert [features_of(each).rules_of_138 for each in ("1.37", "1.38")] == [
        False,
        True,
    ]


def test_gates_that_a_release_lacks_are_off() -> None:
    """Every gate that we know has a default in every release."""
    assert default_gates("1.34").keys() == default_gates("1.37").keys() == GATES.keys()
    assert not default_gates("1.34")["DRADeviceTaintRules"]
    assert default_gates("1.37")["DRADeviceTaintRules"]


def test_binding_needs_both_of_its_gates() -> None:
    """One of them alone changes nothing."""
    changed = features_of("1.37", {"DRAResourceClaimDeviceStatus": False})
    assert not changed.device_binding


@pytest.mark.parametrize(
    ("version", "gates", "what"),
    [
        ("one", {}, "'one' is no version of Kubernetes"),
        ("1.37", {"DRATypo": True}, "'DRATypo' is unknown"),
    ],
)
def test_unknown_names_are_refused(
    version: str, gates: dict[str, bool], what: str
) -> None:
    """A misspelled gate would silently do nothing."""
    with pytest.raises(FeatureError, match=what):
        features_of(version, gates)


def test_gates_are_read_as_kubernetes_writes_them() -> None:
    """`Name=true`, and nothing else."""
    assert read_gates(["DRAAdminAccess=false"]) == {"DRAAdminAccess": False}
    with pytest.raises(FeatureError, match="'DRAAdminAccess' is not Name=true"):
        read_gates(["DRAAdminAccess"])
