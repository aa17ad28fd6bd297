"""A gang is made ready to be decided, or refused by the field to blame."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.ids import GangUID
from solver.problem.assemble import SnapshotLookup
from solver.problem.gangs import GangPart
from solver.problem.resolve import ResolveOptions, resolve
from tests.builders import (
    claim,
    claim_template,
    gang,
    gang_constraint,
    member,
    member_claim,
    request,
    sub_request,
)
from tests.builders.problems import observe, snapshot_of


def resolved(asking: Gang, *objects: Any) -> GangPart:
    """Resolve a gang in a cluster with one class and these objects."""
    snapshot = snapshot_of({})
    for item in objects:
        metadata = item.metadata
        snapshot = observe(snapshot, f"{metadata.namespace}/{metadata.name}", item)
    return resolve(
        GangUID("u"), asking, ResolveOptions(lookup=SnapshotLookup(snapshot))
    )


@pytest.mark.parametrize(
    ("asking", "rule", "rejected"),
    [
        (gang(member(name="Worker")), Rule.INVALID, True),
        (gang(member(member_claim(template="t"))), Rule.UNKNOWN_TEMPLATE, False),
        (gang(member(member_claim(claim="c"))), Rule.UNKNOWN_CLAIM, False),
        (
            gang(member(member_claim(request(device_class="no.such.class")))),
            Rule.UNKNOWN_CLASS,
            False,
        ),
    ],
)
def test_what_cannot_be_decided_is_refused_by_rule(
    asking: Gang, rule: Rule, *, rejected: bool
) -> None:
    """For good where the gang itself is wrong, for now where something is missing."""
    part = resolved(asking)
    assert [reason.rule for reason in part.refused] == [rule]
    assert part.rejected is rejected


def test_a_path_into_a_template_names_what_the_template_asks_for() -> None:
    """It is known only here; what it does not ask for is refused for good."""
    template = claim_template(request(first_available=[sub_request("a")]), name="t")
    pods = member(member_claim(template="t"))

    for path in ("worker", "worker/gpus", "worker/gpus/gpu", "worker/gpus/gpu/a"):
        asked = gang(pods, constraints=(gang_constraint(None, path),))
        assert resolved(asked, template).constraints == asked.spec.constraints
    for path in ("worker/gpus/nic", "worker/gpus/gpu/b"):
        asked = gang(pods, constraints=(gang_constraint(None, path),))
        part = resolved(asked, template)
        assert part.refused[0].rule is Rule.INVALID
        assert part.refused[0].field == "spec.constraints[0].requests[0]"
        assert part.rejected


def test_a_reference_leads_to_the_spec_that_it_names() -> None:
    """A template or a claim is as good as a claim that is written out."""
    template = claim_template(request(count=3), name="t")
    by_template = resolved(gang(member(member_claim(template="t"))), template)
    by_name = resolved(
        gang(member(member_claim(claim="c"))), claim(request(count=3), name="c")
    )
    written = resolved(gang(member(member_claim(request(count=3)))))
    for part in (by_template, by_name, written):
        (found,) = part.members[0].claims[0].requests
        assert found.alternatives[0].count == 3


def test_a_gang_weighs_the_devices_that_it_asks_for() -> None:
    """A request for all counts as one; a weight that is said counts as said."""
    two = member(member_claim(request("a", count=3), request("b", mode="All")), count=2)
    assert resolved(gang(two)).weight == 8
    assert resolved(gang(two, weight=1)).weight == 1


def test_pods_that_a_gang_can_do_without_weigh_nothing() -> None:
    """Devices count at minCount; a minCount that says nothing is not recorded."""
    claims = (member_claim(request(count=3)),)
    some = resolved(gang(member(*claims, count=4, min_count=1)))
    assert (some.weight, some.members[0].min_count, some.is_elastic) == (3, 1, True)
    every = resolved(gang(member(*claims, count=4, min_count=4)))
    assert (every.weight, every.members[0].min_count) == (12, None)
    assert every.core is every
    assert [m.count for m in some.core.members] == [1]
