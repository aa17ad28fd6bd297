"""Kueue's objects in both versions that are served."""

from __future__ import annotations

from typing import Any

from contracts.kubernetes.decode import decode_object
from contracts.kueue import ClusterQueue, Cohort, list_uncounted
from contracts.quantity import Quantity


def queue(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def test_both_versions_say_the_same() -> None:
    """v1beta1 calls the cohort otherwise."""
    older = decode_object(queue("v1beta1", cohort="research"))
    newer = decode_object(queue("v1beta2", cohortName="research"))
    assert older.value == newer.value
    assert isinstance(newer.value, ClusterQueue)
    assert newer.value.spec.cohort_name == "research"
    assert older.unknown == newer.unknown == ()


def test_amounts_and_limits_are_quantities() -> None:
    """No limit is not a limit of 0."""
    resource = {"name": "gpu", "nominalQuota": 8, "lendingLimit": "2"}
    flavors = [{"name": "any", "resources": [resource]}]
    group = {"coveredResources": ["gpu"], "flavors": flavors}
    found = decode_object(queue("v1beta2", resourceGroups=[group])).value
    assert isinstance(found, ClusterQueue)
    ((amounts,),) = (f.resources for f in found.spec.resource_groups[0].flavors)
    assert amounts.nominal_quota == Quantity.parse("8")
    assert (amounts.borrowing_limit, amounts.lending_limit) == (
        None,
        Quantity.parse("2"),
    )


def test_what_is_not_understood_is_named() -> None:
    """A field of a newer Kueue, and those that nobody here would answer."""
    assert decode_object(queue("v1beta2", later=1)).unknown == ("spec.later",)
    rules = {"admissionChecks": [{"name": "prov"}]}
    found = decode_object(queue("v1beta2", admissionChecksStrategy=rules)).value
    assert isinstance(found, ClusterQueue)
    assert list_uncounted(found) == ("spec.admissionChecksStrategy",)
    assert list_uncounted(ClusterQueue()) == ()


def test_a_cohort_may_have_a_parent() -> None:
    """And quotas of its own."""
    raw = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": "a"},
        "spec": {"parentName": "all"},
    }
    found = decode_object(raw).value
    assert isinstance(found, Cohort)
    assert found.spec.parent_name == "all"
