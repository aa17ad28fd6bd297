"""What the strategies call valid, the validators accept."""

from __future__ import annotations

from hypothesis import given

from contracts.claim import DeviceClass, ResourceClaim
from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.kubernetes.defaults import default_claim, default_gang
from contracts.validate import validate
from tests.draw import strategies


@given(value=strategies.resource_slices() | strategies.device_classes())
def test_valid_slices_and_classes_are_accepted(
    value: ResourceSlice | DeviceClass,
) -> None:
    """What the strategies promise to be valid has no violation."""
    assert validate(value) == ()


@given(value=strategies.claims())
def test_valid_claims_are_accepted_and_have_all_defaults(value: ResourceClaim) -> None:
    """Filling in defaults changes nothing of them."""
    assert validate(value) == ()
    assert default_claim(value) == value


@given(value=strategies.gangs())
def test_valid_gangs_are_accepted_and_have_all_defaults(value: Gang) -> None:
    """Filling in defaults changes nothing of them."""
    assert validate(value) == ()
    assert default_gang(value) == value


@given(value=strategies.of(ResourceSlice))
def test_any_slice_can_be_judged(value: ResourceSlice) -> None:
    """Whatever decodes is judged, and nothing is raised."""
    for violation in validate(value):
        assert str(violation).startswith(f"{violation.field}: {violation.rule}")


@given(value=strategies.of(ResourceClaim))
def test_any_claim_can_be_judged(value: ResourceClaim) -> None:
    """Whatever decodes is judged, and nothing is raised."""
    for violation in validate(value):
        assert str(violation).startswith(f"{violation.field}: {violation.rule}")


@given(value=strategies.of(Gang))
def test_any_gang_can_be_judged(value: Gang) -> None:
    """Whatever decodes is judged, and nothing is raised."""
    for violation in validate(value):
        assert str(violation).startswith(f"{violation.field}: {violation.rule}")
