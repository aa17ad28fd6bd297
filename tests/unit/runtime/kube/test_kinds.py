"""Where objects are served, and which version of them."""

from __future__ import annotations

import pytest

from runtime.kube.kinds import (
    GANG,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    choose_kinds,
    key_of,
)

ALL = {"resourceclaims", "resourceslices", "devicetaintrules"}


def test_a_path_has_group_version_namespace_name_and_subresource() -> None:
    """The core group is served apart; names are quoted."""
    assert POD.path() == "/api/v1/pods"
    assert POD.path("a", "b", "status") == "/api/v1/namespaces/a/pods/b/status"
    assert RESOURCE_CLAIM.path_of("a/b") == (
        "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b"
    )
    assert NODE.path("ignored", "a/b") == "/api/v1/nodes/a%2Fb"
    assert RESOURCE_SLICE.at("v1beta1").path().startswith("/apis/resource.k8s.io/v1b")
    assert GANG.api_version == "moorings.dev/v1alpha1"


@pytest.mark.parametrize(
    ("served", "version", "rules"),
    [
        ({"v1": ALL, "v1beta2": ALL}, "v1", "v1"),
        ({"v1beta2": ALL, "v1beta1": ALL}, "v1beta2", "v1beta2"),
        ({"v1": {"resourceclaims"}, "v1alpha3": ALL}, "v1", "v1alpha3"),
        ({"v1beta1": {"resourceclaims"}}, "v1beta1", None),
    ],
)
def test_the_newest_version_that_both_sides_know_is_chosen(
    served: dict[str, set[str]], version: str, rules: str | None
) -> None:
    """Taint rules have versions of their own, and may not be served at all."""
    kinds = choose_kinds(served)
    assert kinds is not None
    assert kinds.resource_claim.version == kinds.device_class.version == version
    found = kinds.device_taint_rule
    assert (None if found is None else found.version) == rules
    assert (found in kinds.followed) is (rules is not None)


def test_a_cluster_without_dra_has_no_kinds() -> None:
    """Whoever asks can say so, instead of failing at the first request."""
    assert choose_kinds({"v1alpha2": ALL}) is None


def test_a_key_has_a_namespace_only_where_the_object_has_one() -> None:
    """So that the keys of nodes are their names."""
    assert key_of({"metadata": {"name": "a", "namespace": "b"}}) == "b/a"
    assert key_of({"metadata": {"name": "a"}}) == "a"


@pytest.mark.parametrize(
    ("release", "has"), [("1.33", False), ("1.34", True), ("1.40", True), ("", True)]
)
def test_allocations_have_a_time_since_1_34(release: str, *, has: bool) -> None:
    """Who does not say its release is taken for a new one."""
    kinds = choose_kinds({"v1beta1": ALL}, release=release)
    assert kinds is not None
    assert kinds.has_allocation_times is has
