"""What the solver says of a decision, and what it keeps to itself."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.allocation import DeviceAllocationConfiguration, Reason, Rule
from contracts.ids import GangUID, Namespace, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import GangAllocated, GangPending
from solver.decision import GangDecision
from solver.service.messages import address_decision, make_decision
from tests.builders import decisions, gang, member
from tests.builders.problems import CLUSTER


def test_an_unchanged_reason_is_not_repeated() -> None:
    """Whoever waits is told once why."""
    reasons = (Reason(rule=Rule.TAKEN, message="x"),)
    uid = GangUID("u")
    said = GangPending(
        cluster=CLUSTER,
        namespace=Namespace("ns"),
        name="g",
        uid=uid,
        solve=SolveID("s"),
        attempt=0,
        epoch=1,
        reasons=reasons,
    )
    record = GangRecord(uid=uid, namespace=Namespace("ns"), decision=said)
    again = GangDecision(uid=uid, name="g", reasons=reasons)
    fields = {"cluster": CLUSTER, "solve": SolveID("t"), "epoch": 1}
    assert make_decision(again, record, **fields) is None  # type: ignore[arg-type]  # ids of one batch
    other = GangDecision(uid=uid, name="g", reasons=(Reason(rule=Rule.JOINT),))
    assert isinstance(make_decision(other, record, **fields), GangPending)  # type: ignore[arg-type]  # ids of one batch


def test_a_decision_that_the_bus_cannot_take_waits_and_says_why() -> None:
    """Too many bytes are a reason like any other."""
    config = DeviceAllocationConfiguration(
        source="FromClaim", opaque={"parameters": "x" * 10_000}
    )
    decision = decisions.gang_allocated(pods=1)
    (one,) = decision.members
    (claim,) = one.claims
    devices = replace(claim.allocation.devices, config=(config,) * 32)
    claim = replace(claim, allocation=replace(claim.allocation, devices=devices))
    fits, _ = address_decision(
        replace(decision, members=(replace(one, claims=(claim,)),))
    )
    assert isinstance(fits, GangAllocated)
    heavy = (replace(one, claims=(claim,)),) * 27
    message, addressed = address_decision(replace(decision, attempt=3, members=heavy))
    assert isinstance(message, GangPending)
    assert message.attempt == 2
    assert "bytes" in message.reasons[0].message
    assert len(addressed.data) < 1000


def test_a_gang_that_grows_is_decided_again_with_all_its_pods() -> None:
    """In the order of its members; one that does not is not told so."""
    first, second, third = (decisions.member_allocated(index=n) for n in range(3))
    wanted = gang(member(count=4, min_count=1))
    before = replace(decisions.gang_allocated(first, attempt=4), growing={"worker": 3})
    record = GangRecord.of(before).apply(decisions.submission(wanted), 1)
    record = record.apply(before, 2)
    answer = GangDecision(uid=before.uid, name="train", members=(third, second))
    fields: Any = {"cluster": CLUSTER, "solve": SolveID("t"), "epoch": 2}
    assert make_decision(answer, record, **fields) == replace(
        before,
        members=(first, second, third),
        growing={"worker": 1},
        kept={"worker": 1},
        attempt=5,
        solve=SolveID("t"),
        epoch=2,
    )
    for reason in (Reason(rule=Rule.GROWING), Reason(rule=Rule.INVALID)):
        none = replace(answer, members=(), reasons=(reason,), rejected=True)
        assert make_decision(none, record, **fields) is None
