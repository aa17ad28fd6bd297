"""What the shares of a device consume together."""

from __future__ import annotations

from contracts.quantity import Quantity
from solver.snapshot.device_uses import DeviceUse, Share, sum_consumed


def test_a_negative_amount_gives_no_room() -> None:
    """The API server takes any amount in a claim's status (kubernetes#141705)."""
    shares = {
        str(number): Share(frozenset({"holder"}), (("memory", Quantity.of(amount)),))
        for number, amount in enumerate((90, -50))
    }
    use = DeviceUse(shares=shares)
    assert sum_consumed(use) == (("memory", Quantity.of(90)),)
