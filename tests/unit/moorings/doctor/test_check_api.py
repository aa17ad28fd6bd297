"""Releases, versions and gates."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.features import default_gates
from moorings.doctor.check_api import check_api
from tests.builders.doctor import RESOURCES, cluster_facts, worst

CHANGED = {**default_gates("1.37"), "DRAConsumableCapacity": False}


@pytest.mark.parametrize(
    ("changes", "check", "level", "words"),
    [
        (
            {"release": "1.31", "served": {"v1alpha3": RESOURCES}},
            "kubernetes.release",
            "fail",
            "1.31",
        ),
        (
            {"release": "1.33", "served": {"v1beta1": RESOURCES}},
            "kubernetes.release",
            "warn",
            "no resource.k8s.io/v1: no alternatives",
        ),
        ({"release": "1.40"}, "kubernetes.release", "warn", "newer"),
        ({"release": ""}, "kubernetes.release", "warn", "does not report"),
        ({"served": {"v1alpha2": RESOURCES}}, "kubernetes.served", "fail", "v1alpha2"),
        ({"served": {}}, "kubernetes.served", "fail", "nothing"),
        (
            {"served": {"v1": RESOURCES - {"devicetaintrules"}}},
            "kubernetes.taint-rules",
            "warn",
            "DeviceTaintRule",
        ),
        ({"gang_served": False}, "kubernetes.gang-kind", "warn", "Gang"),
        (
            {"gates": {"DynamicResourceAllocation": False}},
            "kubernetes.gates",
            "fail",
            "DynamicResourceAllocation is off",
        ),
        ({"gates": CHANGED}, "kubernetes.gates", "warn", "DRAConsumableCapacity"),
        (
            {"gates": {**default_gates("1.37"), "DRADerivedAttributes": True}},
            "kubernetes.gates",
            "warn",
            "DRADerivedAttributes=true",
        ),
    ],
)
def test_what_is_wrong_is_named(
    changes: dict[str, Any], check: str, level: str, words: str
) -> None:
    line = worst(check_api(cluster_facts(**changes)))[check]
    assert line.level == level
    assert words in line.why


def test_gates_are_compared_with_the_defaults_of_the_release() -> None:
    """An older release has fewer of them on, and that is no finding."""
    facts = cluster_facts(release="1.35", gates=default_gates("1.35"))
    assert "kubernetes.gates" not in worst(check_api(facts))
    newest = cluster_facts(release="1.35", gates=default_gates("1.37"))
    assert "kubernetes.gates" in worst(check_api(newest))


def test_the_solver_is_told_in_its_own_words() -> None:
    line = worst(check_api(cluster_facts(gates=CHANGED)))["kubernetes.gates"]
    assert "SOLVER_FEATURE_GATES=DRAConsumableCapacity=false" in line.remedy
