"""What the API server fills in."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import (
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)
from contracts.kubernetes.defaults import default_claim, default_gang, default_template
from tests.builders import (
    claim,
    claim_template,
    gang,
    member,
    member_claim,
    request,
    sub_request,
)

BARE = ExactDeviceRequest(device_class_name=request().exactly.device_class_name)  # type: ignore[union-attr] # the builder makes an exact request
FULL = request("gpu")


def test_an_empty_mode_means_one_device() -> None:
    """As the API server fills in."""
    bare = DeviceRequest(name="gpu", exactly=BARE)
    spec = claim(FULL).spec

    assert default_claim(claim(bare)).spec == spec
    assert default_template(claim_template(bare)).spec.spec == spec
    by_gang = default_gang(gang(member(member_claim(bare))))
    assert by_gang == gang(member(member_claim(FULL)))


def test_alternatives_get_defaults_too() -> None:
    """Each subrequest as if it stood alone."""
    bare = DeviceSubRequest(name="one", device_class_name=BARE.device_class_name)
    listed = request(first_available=[bare])

    defaulted = default_claim(claim(listed)).spec.devices.requests[0]

    assert defaulted == request(first_available=[sub_request("one")])


def test_what_is_said_stays() -> None:
    """A default never replaces a value."""
    said = claim(request(count=3), request("all", mode="All"))

    assert default_claim(said) == said


def test_all_devices_have_no_count_and_a_wrong_mode_stays_wrong() -> None:
    """Defaults mend no mistakes."""
    wrong = DeviceRequest(name="gpu", exactly=replace(BARE, allocation_mode="Some"))

    assert default_claim(claim(wrong)) == claim(wrong)


def test_tolerations_compare_unless_they_say_otherwise() -> None:
    """The operator is Equal."""
    silent = DeviceToleration(key="a", value="b")

    defaulted = default_claim(claim(request(tolerations=(silent,))))

    exactly = defaulted.spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.tolerations == (replace(silent, operator="Equal"),)


def test_claims_by_name_are_left_alone() -> None:
    """What they ask for is said elsewhere."""
    named = gang(member(member_claim(claim="c"), member_claim(name="n", template="t")))

    assert default_gang(named) == named
