"""Large batches in which some gangs have rules that span pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.gang import Gang, MemberClaim
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines import choose
from solver.engines.apart import APART
from solver.engines.choose import PACKING
from solver.engines.spanning import loosen
from solver.tiers import Tier
from tests.builders import (
    devices,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of
from tests.builders.sharing import fabric, workers

RACK = "example.com/rack"
BY_RACK = (topology_rule(RACK),)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide what is small as if it were large."""
    monkeypatch.setattr(choose, "WHOLE", 0)


def asking(number: int, pods: int, size: int = 1, **spec: Any) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    wanted = member(member_claim(request(count=size)), count=pods)
    return gang(wanted, name=f"g{number}", uid=uid, **spec)


def decided(racks: dict[str, str], *gangs: Gang, size: int = 2) -> Decision:
    """Decide on nodes with so many devices each, by the rack that they are in."""
    pools = {name: [pool(*devices(size), name=name)] for name in racks}
    snapshot = observe_core(
        snapshot_of(pools, gangs),
        *(node(name, labels={RACK: rack}) for name, rack in racks.items()),
    )
    return allocate(problem_of(snapshot))


FOUR = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}


def test_both_sorts_of_gangs_are_in_and_it_is_proven() -> None:
    """What all are worth without rules that span pods is reached."""
    found = decided(FOUR, asking(0, 2), asking(1, 4, topology=BY_RACK), asking(2, 2))
    assert found.statistics.engine == PACKING
    assert found.status is Status.OPTIMAL
    assert all(item.members for item in found.gangs)
    assert found.objective[0].value == found.objective[0].bound == 8


def test_counting_racks_proves_that_a_gang_is_not_in() -> None:
    """Each rack holds four; six in one rack are never in, though eight devices are."""
    found = decided(FOUR, asking(0, 6, topology=BY_RACK), asking(1, 2))
    assert found.status is Status.OPTIMAL
    assert [bool(item.members) for item in found.gangs] == [False, True]
    assert (found.objective[0].value, found.objective[0].bound) == (2, 2)


def test_the_rest_goes_first_where_that_is_worth_more() -> None:
    """A rack for four leaves no place for six elsewhere that are worth more."""
    found = decided(FOUR, asking(0, 4, topology=BY_RACK, weight=1), asking(1, 6))
    assert [bool(item.members) for item in found.gangs] == [False, True]
    assert (found.objective[0].value, found.objective[0].bound) == (6, 6)


def test_a_higher_priority_never_gives_way() -> None:
    """However little it is worth; the bound of what is below stays valid."""
    high = asking(0, 4, topology=BY_RACK, weight=1, priority=5)
    found = decided(FOUR, high, asking(1, 6), asking(2, 4))
    assert [bool(item.members) for item in found.gangs] == [True, False, True]
    assert [(t.value, t.bound) for t in found.objective[:2]] == [(1, 1), (4, 4)]
    assert found.status is Status.OPTIMAL


def test_a_priority_that_is_proven_out_takes_nothing_from_those_below() -> None:
    """Counting racks says so of the first; the others are decided beside it."""
    high = asking(0, 6, topology=BY_RACK, priority=5)
    found = decided(FOUR, high, asking(1, 2, priority=3), asking(2, 2, priority=1))
    assert [bool(item.members) for item in found.gangs] == [False, True, True]
    values = [(t.value, t.bound) for t in found.objective[:3]]
    assert values == [(0, 0), (2, 2), (2, 2)]


def test_what_nobody_of_a_priority_reaches_takes_no_proof_from_those_below() -> None:
    """Each of its pods has room, and all of them together have not."""
    claim = member_claim(request())
    pods = [member(claim, name=name, count=6) for name in ("one", "other")]
    pods[1] = member(claim, name="other", count=6, resources={"cpu": 1})
    high = gang(*pods, name="high", uid="00000000-0000-4000-8000-000000000009")
    high = structs.replace(high, spec=structs.replace(high.spec, priority=5))

    three = [asking(0, 4, topology=BY_RACK), asking(1, 4), asking(2, 4)]
    found = decided(FOUR, high, *three)

    assert [(t.value, t.bound) for t in found.objective[:2]] == [(0, 0), (8, 8)]


def test_gangs_with_rules_leave_of_nodes_what_the_rest_needs() -> None:
    """Two threes on one node leave five on one alone; on two nodes, on both."""
    in_rack = asking(0, 2, 3, topology=BY_RACK)
    found = decided({"a0": "a", "a1": "a"}, in_rack, asking(1, 2, 5), size=8)
    assert found.status is Status.OPTIMAL
    assert (found.objective[0].value, found.objective[0].bound) == (16, 16)


def test_what_one_part_holds_the_other_does_not_get() -> None:
    """Node resources too: the judge sees all of it at once."""
    racks = dict.fromkeys(("a0", "a1", "a2"), "a")
    gangs = [asking(n, 1, topology=BY_RACK if n % 2 else ()) for n in range(8)]
    found = decided(racks, *gangs)
    assert sum(bool(item.members) for item in found.gangs) == 6


def test_gangs_that_share_a_claim_over_nodes_leave_the_rest_to_patterns() -> None:
    """They have a bound, too: what all are worth if the claim is no matter."""
    plain = [
        gang(
            member(
                member_claim(request(device_class="gpus"), name="gpu"), count=number + 1
            ),
            name=f"p{number}",
            uid=f"00000000-0000-4000-8000-00000000000{number}",
        )
        for number in range(2)
    ]
    found = allocate(fabric("aabb", workers(2), *plain, gpus=2))
    assert found.statistics.engine == APART
    assert found.status is Status.OPTIMAL
    assert all(item.members for item in found.gangs)


def test_gangs_that_are_too_large_for_what_they_prefer_are_in() -> None:
    """Six devices in racks of four; beside one that has a rack for itself."""
    preferred = (topology_rule(RACK, mode="Preferred"),)
    found = decided(FOUR, asking(0, 6, topology=preferred), asking(1, 2))
    assert found.statistics.engine == APART
    assert all(item.members for item in found.gangs)
    assert [t.value for t in found.objective if t.tier is Tier.TOPOLOGY] == [1]
    found = decided(FOUR, asking(0, 4, topology=preferred), asking(1, 4))
    assert found.status is Status.OPTIMAL
    assert [t.value for t in found.objective if t.tier is Tier.TOPOLOGY] == [0]


@pytest.mark.parametrize(
    "claim",
    [
        member_claim(request(mode="All")),
        member_claim(
            request(
                first_available=(
                    sub_request("many", count=2),
                    sub_request("none", count=9),
                )
            )
        ),
    ],
    ids=["all", "alternatives"],
)
def test_what_packing_does_not_know_is_bound_to_domains_as_well(
    claim: MemberClaim,
) -> None:
    """Two nodes in one rack; the other one is for who asks for less."""
    whole = gang(member(claim, count=2), name="whole", topology=BY_RACK)
    found = decided(FOUR, asking(0, 3), whole, asking(1, 1))
    assert found.statistics.engine == APART
    assert found.status is Status.OPTIMAL
    assert all(item.members for item in found.gangs)
    (racks,) = {tuple(str(p.node)[0] for p in a.members) for a in found.gangs[1:2]}
    assert len(set(racks)) == 1


def test_required_domains_are_kept_where_a_gang_has_fewer_rules() -> None:
    """What is preferred, limited, or about devices is left out."""
    rules = (
        topology_rule(RACK),
        topology_rule(RACK, mode="Preferred"),
        topology_rule(RACK, max_per_domain=1),
        topology_rule("attribute:gpu.example.com/rail"),
    )
    asked = asking(0, 2, topology=rules, constraints=(gang_constraint(),))
    (part,) = problem_of(snapshot_of({}, [asked])).gangs
    kept = loosen(part, keeps_labels=True)
    assert kept.topology == rules[:1]
    assert not kept.constraints
    assert not loosen(part, keeps_labels=False).topology
