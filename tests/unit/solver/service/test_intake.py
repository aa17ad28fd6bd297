"""What the service decides without I/O: batches, presence, intake, messages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.allocation import DeviceAllocationConfiguration, Reason, Rule
from contracts.ids import (
    ClusterName,
    DeviceID,
    GangUID,
    Namespace,
    NodeName,
    SolveID,
)
from contracts.messages import (
    DeviceHealth,
    DevicesAnnounced,
    GangAllocated,
    GangPending,
    HealthJudged,
    NodeSeen,
    SubmitGang,
)
from runtime.wire import Received
from solver.decision import GangDecision
from solver.service.intake import Refused, RefusedSubmission, Seen, read_message
from solver.service.messages import carried, decision_message
from solver.service.presence import judge_presence
from solver.snapshot.batch import BatchLimits, choose_batch
from solver.snapshot.gangs import GangRecord
from solver.snapshot.maps import FrozenMap
from solver.snapshot.snapshot import (
    GangTried,
    InventoryExpired,
    NodePresence,
    Snapshot,
    apply,
)
from tests.builders import decisions, devices, gang, member, pool
from tests.builders.problems import CLUSTER, snapshot_of

A = NodeName("a")


def gangs(*priorities: int, pods: int = 1) -> Snapshot:
    wanted = [
        gang(
            member(count=pods),
            name=f"g{index}",
            uid=f"00000000-0000-4000-8000-{index:012}",
            priority=priority,
        )
        for index, priority in enumerate(priorities)
    ]
    return snapshot_of({}, wanted)


def names(records: tuple[GangRecord, ...]) -> list[str]:
    return [record.name for record in records]


def test_a_batch_is_by_priority_then_age() -> None:
    batch = choose_batch(gangs(0, 5, 0, 5), BatchLimits())
    assert names(batch) == ["g1", "g3", "g0", "g2"]


def test_a_batch_has_limits_but_takes_one_gang_of_any_size() -> None:
    assert len(choose_batch(gangs(*[0] * 5), BatchLimits(gangs=3))) == 3
    assert len(choose_batch(gangs(*[0] * 5, pods=4), BatchLimits(pods=8))) == 2
    assert len(choose_batch(gangs(0, pods=100), BatchLimits(pods=8))) == 1


def test_a_gang_is_tried_again_only_after_something_grew() -> None:
    snapshot = gangs(0)
    (record,) = choose_batch(snapshot, BatchLimits())
    tried = GangTried(
        uid=record.uid, namespace=record.namespace, growth=snapshot.growth
    )
    snapshot = apply(snapshot, tried)
    assert choose_batch(snapshot, BatchLimits()) == ()
    grown = snapshot_of({}, []).inventory.grown()
    from msgspec import structs

    later = structs.replace(grown, growth=snapshot.growth + 1)
    snapshot = structs.replace(snapshot, inventory=later)
    assert len(choose_batch(snapshot, BatchLimits())) == 1


def test_a_resting_gang_is_left_out() -> None:
    (record,) = choose_batch(gangs(0), BatchLimits())
    assert choose_batch(gangs(0), BatchLimits(), resting={record.uid}) == ()


@pytest.mark.parametrize(
    ("seen", "away", "connected", "now", "changes"),
    [
        ({A: 95.0}, False, 0.0, 100.0, []),
        ({A: 60.0}, False, 0.0, 100.0, [(A, True)]),
        ({A: 60.0}, False, 90.0, 100.0, []),
        ({}, False, 80.0, 100.0, []),
        ({}, False, 60.0, 100.0, [(A, True)]),
        ({A: 95.0}, True, 0.0, 100.0, [(A, False)]),
        ({A: 60.0}, True, 95.0, 100.0, []),
    ],
)
def test_a_node_is_away_after_the_grace_while_connected(
    seen: dict[NodeName, float],
    away: bool,
    connected: float,
    now: float,
    changes: list[tuple[NodeName, bool]],
) -> None:
    found = judge_presence(
        seen, {A: away}, connected_since=connected, now=now, grace_s=30.0
    )
    assert list(found) == changes


def received(subject: str, data: bytes, gone: str = "") -> Received:
    return Received(subject=subject, data=data, sequence=1, time_s=0.0, gone=gone)


def test_a_message_that_contradicts_its_subject_is_refused() -> None:
    from contracts import messages, subjects

    uid = GangUID("00000000-0000-4000-8000-000000000001")
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang(namespace="ns"))
    data = messages.SUBMISSION.encode(message)
    right = subjects.submit(CLUSTER, Namespace("ns"), uid)
    assert read_message(received(right, data), CLUSTER) == message
    wrong = subjects.submit(CLUSTER, Namespace("other"), uid)
    refused = read_message(received(wrong, data), CLUSTER)
    assert isinstance(refused, RefusedSubmission)
    assert "but its subject says" in refused.reason.message


def test_what_cannot_be_read_is_refused_with_its_subject() -> None:
    refused = read_message(received("inv.v1.test.a", b"{"), CLUSTER)
    assert isinstance(refused, Refused)
    assert refused.subject == "inv.v1.test.a"


def test_nothing_is_left_of_an_agent_that_is_silent_for_long() -> None:
    own = pool(*devices(1), name="a")
    sick = DeviceHealth(
        device=DeviceID(own.driver, own.name, own.devices[0].name), verdict="Unknown"
    )
    snapshot = Snapshot()
    for message in (
        DevicesAnnounced(cluster=CLUSTER, node=A, pools=(own,)),
        HealthJudged(cluster=CLUSTER, node=A, devices=(sick,)),
        NodePresence(node=A, away=True),
    ):
        snapshot = apply(snapshot, message)
    for entity in ("inv", "health"):
        subject = f"{entity}.v1.test.a"
        gone = read_message(received(subject, b"", gone="MaxAge"), CLUSTER)
        assert isinstance(gone, InventoryExpired | HealthJudged)
        snapshot = apply(snapshot, gone)
    inventory = snapshot.inventory
    assert not list(inventory.pages)
    kept = {name: getattr(inventory, name) for name in inventory.__struct_fields__}
    maps = {name: of for name, of in kept.items() if isinstance(of, FrozenMap)}
    assert {name: list(of) for name, of in maps.items() if len(of)} == {}


def test_heartbeats_are_seen_whatever_they_carry() -> None:
    beat = NodeSeen(cluster=ClusterName("test"), node=A)
    assert beat.incarnation == ""
    assert read_message(received("hb.v1.test.a", b"{"), CLUSTER) == Seen(
        node=A, away=False
    )


def test_an_unchanged_reason_is_not_repeated() -> None:
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
    assert decision_message(again, record, **fields) is None  # type: ignore[arg-type]  # ids of one batch
    other = GangDecision(uid=uid, name="g", reasons=(Reason(rule=Rule.JOINT),))
    assert isinstance(decision_message(other, record, **fields), GangPending)  # type: ignore[arg-type]  # ids of one batch


@pytest.mark.parametrize("entity", ["submit", "cmd", "dec", "conf", "inv", "hb"])
def test_a_subject_that_nobody_of_us_makes_is_refused(entity: str) -> None:
    """Such a message stays in its stream: whoever fails on it fails at each start."""
    subject = f"{entity}.v1.{CLUSTER}.ns.=FF"
    received = Received(subject=subject, data=b"{}", sequence=1, time_s=0)
    refused = read_message(received, CLUSTER)
    assert isinstance(refused, Refused)
    assert "=FF" in refused.reason


def test_a_decision_that_the_bus_cannot_take_waits_and_says_why() -> None:
    config = DeviceAllocationConfiguration(
        source="FromClaim", opaque={"parameters": "x" * 10_000}
    )
    decision = decisions.gang_allocated(pods=1)
    (one,) = decision.members
    (claim,) = one.claims
    devices = replace(claim.allocation.devices, config=(config,) * 32)
    claim = replace(claim, allocation=replace(claim.allocation, devices=devices))
    fits, _ = carried(replace(decision, members=(replace(one, claims=(claim,)),)))
    assert isinstance(fits, GangAllocated)
    heavy = (replace(one, claims=(claim,)),) * 27
    message, addressed = carried(replace(decision, attempt=3, members=heavy))
    assert isinstance(message, GangPending)
    assert message.attempt == 2
    assert "bytes" in message.reasons[0].message
    assert len(addressed.data) < 1000
