"""A device that could not be attached is known until its claim holds devices again."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from publisher.gangs.failed_devices import SeenFailures
from tests import builders
from tests.builders.pods import real_claim

FREED = real_claim("gpus")
FINE = real_claim("gpus", allocated=builders.allocation(), reserved=["a"])


def failing() -> ResourceClaim:
    result = builders.result(binding_failure_conditions=("failed",))
    claim = real_claim("gpus", allocated=builders.allocation(result), reserved=["a"])
    names = {"driver": result.driver, "pool": result.pool, "device": result.device}
    said = {**names, "conditions": [{"type": "failed", "status": "True"}]}
    assert claim.status is not None
    return replace(claim, status=replace(claim.status, devices=(said,)))


def test_a_failure_outlives_its_claim_being_freed() -> None:
    seen = SeenFailures()
    assert seen.find(["gpus"]) is None
    seen.note_claim("gpus", failing())
    seen.note_claim("gpus", FREED)
    found = seen.find(["other", "gpus"])
    assert found is not None
    assert (found.device.device, found.message) == ("gpu-0", "condition failed")


def test_it_ends_with_other_devices_or_the_claim() -> None:
    for after in (FINE, None):
        seen = SeenFailures()
        seen.note_claim("gpus", failing())
        seen.note_claim("gpus", after)
        assert seen.find(["gpus"]) is None
