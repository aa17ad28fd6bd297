"""What a Problem says of claims that pods share, and of pods to come."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang, Member
from solver.allocate import allocate
from solver.problem.gangs import ClaimPart
from solver.problem.problem import keep_countable
from solver.problem.sharing import find_shared_claims, waits_for_another
from solver.snapshot.events import claim_event
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DRIVER,
    constraint,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.decisions import gang_allocated, gang_released
from tests.builders.models import DRAWN_UID
from tests.builders.problems import expected_of, problem_of, snapshot_of
from tests.builders.values import NAMESPACE


def counted_claim(pod: Member) -> ClaimPart:
    """Leave of a pod's one claim what is counted."""
    (part,) = expected_of(snapshot_of({}), pod)
    (claim,) = keep_countable(part.member).claims
    return claim


@pytest.mark.parametrize(
    "unbounded", [{"mode": "All"}, {"admin_access": True}], ids=["all", "admin"]
)
def test_a_request_that_bounds_nothing_is_left_out(unbounded: dict[str, Any]) -> None:
    """All devices, or devices that others keep, say nothing of how many fit."""
    pod = member(member_claim(request("one"), request("other", **unbounded)))
    assert [r.name for r in counted_claim(pod).requests] == ["one"]


def test_only_the_first_choice_is_counted() -> None:
    """Room is counted by what would be taken first."""
    either = request(first_available=[sub_request("a", count=2), sub_request("b")])
    (found,) = counted_claim(member(member_claim(either))).requests
    assert [alternative.count for alternative in found.alternatives] == [2]


def test_constraints_that_devices_differ_are_left_out() -> None:
    """It is an estimate: only equal values keep devices apart."""
    same, distinct = constraint(), constraint(None, distinct=f"{DRIVER}/i")
    pod = member(member_claim(request(count=2), constraints=[same, distinct]))
    assert len(counted_claim(pod).constraints) == 1


ONE = member_claim(request(), name="a", claim="shared")


def test_a_shared_claim_is_counted_once() -> None:
    """In the weight of its gang."""
    own = member_claim(request(count=2), name="own")
    item = gang(member(ONE, own, count=3), member(ONE, name="other"))
    (part,) = problem_of(snapshot_of({}, [item])).gangs
    assert find_shared_claims(part.members) == {"shared"}
    assert part.weight == 7


@pytest.mark.parametrize(
    "item",
    [
        gang(member(ONE, member_claim(request(), name="b", claim="shared"))),
        gang(
            member(ONE),
            member(member_claim(request(count=2), claim="shared"), name="other"),
        ),
    ],
    ids=["twice in a pod", "asks for something else"],
)
def test_what_cannot_be_one_claim_is_rejected(item: Gang) -> None:
    """By the field."""
    (part,) = problem_of(snapshot_of({}, [item])).gangs
    (reason,) = part.refused
    assert (part.rejected, reason.rule) == (True, Rule.INVALID)
    assert reason.field == "spec.members[].claims[].claimName"


def test_pods_that_may_be_left_out_share_nothing_yet() -> None:
    """It is refused by name, not decided wrongly."""
    (part,) = problem_of(
        snapshot_of({}, [gang(member(ONE, count=3, min_count=1))])
    ).gangs
    (reason,) = part.refused
    assert reason.rule is Rule.NOT_MODELLED
    assert reason.field == "spec.members[].minCount beside a claim that pods share"


def naming(number: int, claim: str = "shared", namespace: str = NAMESPACE) -> Gang:
    """Make a gang that names a claim."""
    asked = member(member_claim(request(), claim=claim))
    uid = DRAWN_UID.format(number)
    return gang(asked, name=f"g{number}", namespace=namespace, uid=uid)


def of_four(*gangs: Gang) -> Snapshot:
    return snapshot_of({"n": [pool(*devices(4), name="n")]}, gangs)


def test_of_two_gangs_that_name_a_claim_the_first_is_tried() -> None:
    """The other is tried next; a name of another namespace is another claim."""
    problem = problem_of(of_four(*map(naming, (1, 2)), naming(3, namespace="web")))
    first, second, elsewhere = problem.gangs
    assert (first.refused, elsewhere.refused) == ((), ())
    (reason,) = second.refused
    assert (reason.rule, second.rejected) == (Rule.CLAIM_SHARED, False)
    assert reason.subject == f"claim {NAMESPACE}/shared"
    assert waits_for_another(second.refused)
    decided = allocate(problem).gangs
    assert [bool(answer.members) for answer in decided] == [True, False, True]


def test_who_is_refused_keeps_no_claim_from_others() -> None:
    """Only who is tried may get it."""
    other = member_claim(request(), name="b", claim="shared")
    broken = gang(member(ONE, other), uid=DRAWN_UID.format(1))
    _, second = problem_of(of_four(broken, naming(2))).gangs
    assert not second.refused


def test_a_claim_that_a_gang_was_given_is_not_given_again() -> None:
    """Until it is over."""
    one, two = naming(1), naming(2)
    snapshot = of_four(one, two)
    held = apply(snapshot, gang_allocated(uid=one.metadata.uid), sequence=1)
    (waits,) = problem_of(held).gangs
    (reason,) = waits.refused
    assert (reason.rule, waits.rejected) == (Rule.CLAIM_SHARED, False)
    assert not waits_for_another(waits.refused)
    held = held.without_grown()
    freed = apply(held, gang_released(one.metadata.uid), sequence=2)
    assert claim_event(f"{NAMESPACE}/shared") in freed.grown
    (tried,) = problem_of(freed).gangs
    assert not tried.refused
