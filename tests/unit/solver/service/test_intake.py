"""What the solver reads from the bus, and what it refuses."""

from __future__ import annotations

import pytest

from contracts.ids import (
    ClusterName,
    DeviceID,
    GangUID,
    Namespace,
    NodeName,
)
from contracts.messages import (
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    NodeSeen,
    SubmitGang,
)
from runtime.wire import Received
from solver.service.intake import Refused, RefusedSubmission, Seen, read_message
from solver.snapshot.maps import FrozenMap
from solver.snapshot.snapshot import (
    InventoryExpired,
    NodePresence,
    Snapshot,
    apply,
)
from tests.builders import devices, gang, pool
from tests.builders.problems import CLUSTER

A = NodeName("a")


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


@pytest.mark.parametrize("entity", ["submit", "cmd", "dec", "conf", "inv", "hb"])
def test_a_subject_that_nobody_of_us_makes_is_refused(entity: str) -> None:
    """Such a message stays in its stream: whoever fails on it fails at each start."""
    subject = f"{entity}.v1.{CLUSTER}.ns.=FF"
    received = Received(subject=subject, data=b"{}", sequence=1, time_s=0)
    refused = read_message(received, CLUSTER)
    assert isinstance(refused, Refused)
    assert "=FF" in refused.reason
