"""ResourceClaims that several pods name are one, and counted once."""

from __future__ import annotations

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.ids import DriverName
from solver.problem.quotas import count_asked
from solver.problem.shared_claims import find_shared_claims
from tests.builders import gang, member, member_claim, request
from tests.builders.problems import problem_of, snapshot_of

ONE = member_claim(request(), name="a", claim="shared")


def test_a_shared_claim_is_counted_once() -> None:
    """In the weight of its gang, and against quotas."""
    own = member_claim(request(count=2), name="own")
    item = gang(member(ONE, own, count=3), member(ONE, name="other"))
    (part,) = problem_of(snapshot_of({}, [item])).gangs
    assert find_shared_claims(part.members) == {"shared"}
    assert (part.weight, count_asked(part, DriverName(""))) == (7, 7)


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
