"""An endless loop of reservations is told from ordinary changes."""

from __future__ import annotations

from contracts.allocation import AllocationResult
from contracts.claim import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from contracts.meta import ObjectMeta
from publisher.gangs.turns import ENDLESS, Turns


def claim(*uids: str, allocated: bool = True) -> ResourceClaim:
    reserved = (
        ResourceClaimConsumerReference(resource="pods", name=uid, uid=uid)
        for uid in uids
    )
    allocation = AllocationResult() if allocated else None
    status = ResourceClaimStatus(allocation=allocation, reserved_for=tuple(reserved))
    return ResourceClaim(metadata=ObjectMeta(), status=status)


def looped(times: int) -> Turns:
    """Let one of two reservations go and come so often."""
    turns, both, one = Turns(), claim("a", "b"), claim("a")
    turns.apply("c", None, both)
    for _ in range(times):
        turns.apply("c", both, one)
        turns.apply("c", one, both)
    return turns


def test_only_who_goes_on_and_on_is_endless() -> None:
    assert not looped(2).are_endless("c", "b")
    assert looped(ENDLESS // 2).are_endless("c", "b")
    assert not looped(ENDLESS).are_endless("c", "a")
    assert not looped(ENDLESS).are_endless("another", "b")


def test_a_claim_that_is_free_begins_anew() -> None:
    turns = looped(ENDLESS)
    turns.apply("c", claim("a"), claim(allocated=False))
    assert not turns.are_endless("c", "b")
