"""A device in use that its whole pool lacks is missing; of others nothing is said."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.codec import to_builtins
from contracts.ids import DeviceID
from contracts.kubernetes.decode import to_kubernetes
from publisher.gangs.offered_devices import OfferedDevices, read_offered
from tests import builders
from tests.builders.pods import real_claim

HELD = builders.allocation(builders.result("gpu-0"), builders.result("gpu-1"))
CLAIM = real_claim("one", allocated=HELD)
KEY = f"{builders.NAMESPACE}/one"


class Seen:
    """Slices of the one pool of which the claim holds devices."""

    def __init__(self) -> None:
        self.offered = OfferedDevices()
        self.offered.note_claim(KEY, None, CLAIM)

    def slice(
        self, name: str, *devices: str, generation: int = 1, count: int = 1
    ) -> frozenset[str]:
        """Publish a slice; returns the claims it is about."""
        made = builders.resource_slice(
            *map(builders.device, devices), generation=generation, slice_count=count
        )
        raw = to_builtins(to_kubernetes(made))
        return self.offered.apply_slice(name, read_offered(raw))

    def missing(self) -> list[str]:
        """Name the devices that are offered no more."""
        return [device.device for device in self.offered.missing(CLAIM)]


def test_a_device_that_leaves_its_slice_is_missing_until_it_is_back() -> None:
    seen = Seen()
    assert seen.slice("a", "gpu-0", "gpu-1") == {KEY}
    assert seen.missing() == []
    assert seen.slice("a", "gpu-1") == {KEY}
    assert seen.missing() == ["gpu-0"]
    assert seen.slice("a", "gpu-1", "gpu-0") == {KEY}
    assert seen.missing() == []


def test_of_a_pool_that_is_not_whole_nothing_is_said() -> None:
    """A node's slices are deleted and come again one by one when kubelet starts."""
    seen = Seen()
    assert seen.missing() == []
    seen.slice("a", "gpu-0", "gpu-1")
    assert seen.offered.apply_slice("a", None) == {KEY}
    assert seen.missing() == []
    seen.slice("b", "gpu-0", count=2)
    assert seen.missing() == []
    seen.slice("c", "gpu-2", count=2)
    assert seen.missing() == ["gpu-1"]


def test_only_the_newest_generation_counts() -> None:
    seen = Seen()
    seen.slice("old", "gpu-0", "gpu-1")
    seen.slice("new", "gpu-0", generation=2)
    assert seen.missing() == ["gpu-1"]
    seen.slice("old", "gpu-0", "gpu-1", generation=3)
    assert seen.missing() == []


def test_other_pools_and_claims_are_not_concerned() -> None:
    seen = Seen()
    other = builders.resource_slice(pool="other")
    raw: dict[str, Any] = to_builtins(to_kubernetes(other))
    assert seen.offered.apply_slice("o", read_offered(raw)) == frozenset()
    assert seen.missing() == []
    seen.offered.note_claim(KEY, CLAIM, None)
    assert seen.slice("a", "gpu-7") == frozenset()


def test_devices_that_others_hold_as_well_are_looked_for_too() -> None:
    """Shares and admin access: whoever uses the device should know."""
    share = builders.result("nic", share_id="00000000-0000-0000-0000-000000000001")
    claim = real_claim("one", allocated=builders.allocation(share))
    seen = Seen()
    seen.slice("a", "gpu-0")
    assert seen.offered.missing(claim) == (
        DeviceID(share.driver, share.pool, share.device),
    )


@pytest.mark.parametrize(
    "raw", [{}, {"spec": {"pool": 3}}, {"spec": {"driver": "d", "pool": {"name": "p"}}}]
)
def test_what_is_no_slice_offers_nothing_and_hides_nothing(raw: dict[str, Any]) -> None:
    assert read_offered(raw) is None
