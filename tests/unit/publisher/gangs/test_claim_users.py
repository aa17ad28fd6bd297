"""Claims of pods without our gate, and reservations that come and go without end."""

from __future__ import annotations

from contracts.allocation import AllocationResult
from contracts.claim import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from contracts.meta import ObjectMeta
from publisher.gangs.claim_users import (
    ENDLESS,
    FinishedUsers,
    ReservationFlips,
    UngatedUsers,
)
from tests import builders
from tests.builders.pods import waiting_pod


def shared_claim(*uids: str, allocated: bool = True) -> ResourceClaim:
    reserved = (
        ResourceClaimConsumerReference(resource="pods", name=uid, uid=uid)
        for uid in uids
    )
    allocation = AllocationResult() if allocated else None
    status = ResourceClaimStatus(allocation=allocation, reserved_for=tuple(reserved))
    return ResourceClaim(metadata=ObjectMeta(), status=status)


def looped(times: int) -> ReservationFlips:
    """Let one of two reservations go and come so often."""
    flips, both, one = ReservationFlips(), shared_claim("a", "b"), shared_claim("a")
    flips.apply("c", None, both)
    for _ in range(times):
        flips.apply("c", both, one)
        flips.apply("c", one, both)
    return flips


def test_only_who_goes_on_and_on_is_endless() -> None:
    assert not looped(2).are_endless("c", "b")
    assert looped(ENDLESS // 2).are_endless("c", "b")
    assert not looped(ENDLESS).are_endless("c", "a")
    assert not looped(ENDLESS).are_endless("another", "b")


def test_a_claim_that_is_free_begins_anew() -> None:
    flips = looped(ENDLESS)
    flips.apply("c", shared_claim("a"), shared_claim(allocated=False))
    assert not flips.are_endless("c", "b")


def test_users_of_long_ago_are_not_counted_any_more() -> None:
    """A claim that many pods use one after the other keeps no trace of all of them."""
    flips = looped(ENDLESS)
    for number in range(1000):
        one = shared_claim(f"user-{number}")
        flips.apply("c", shared_claim(), one)
        flips.apply("c", one, shared_claim())
    assert not flips.are_endless("c", "b")
    for _ in range(ENDLESS):
        flips.apply("c", shared_claim(), shared_claim("b"))
    assert flips.are_endless("c", "b")


def test_a_claim_is_used_until_its_last_user_is_gone() -> None:
    """And what changes is told."""
    users = UngatedUsers()
    assert users.apply("ns/a", ["ns/one", "ns/two"]) == {"ns/one", "ns/two"}
    assert users.apply("ns/b", ["ns/one"]) == {"ns/one"}
    assert users.apply("ns/b", ["ns/one"]) == frozenset()
    assert users.apply("ns/a", ["ns/two"]) == {"ns/one"}
    assert users.has("ns/one")
    assert users.apply("ns/b", ()) == {"ns/one"}
    assert not users.has("ns/one")
    assert users.has("ns/two")


def test_an_immediate_claim_that_is_freed_and_allocated_without_end_is_counted() -> (
    None
):
    flips = ReservationFlips()
    held, free = shared_claim("a"), shared_claim(allocated=False)
    held, free = builders.labelled(held), builders.labelled(free)
    for _ in range(ENDLESS // 2):
        flips.apply("c", free, held)
        flips.apply("c", held, free)
    assert flips.are_endless("c", "a")
    flips.apply("c", free, None)
    assert not flips.are_endless("c", "a")


def test_finished_users_are_known_until_they_are_gone() -> None:
    users, pod = FinishedUsers(), waiting_pod("a")
    assert users.apply("a", pod, ["c", "d"]) == {"c", "d"}
    assert users.apply("a", pod, ["d"]) == {"c"}
    assert (users.of("c"), users.of("d")) == ((), (pod,))
    assert users.apply("b", None, ["c"]) == frozenset()
    assert users.apply("a", None, []) == {"d"}
    assert users.of("d") == ()
