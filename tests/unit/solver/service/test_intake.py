"""What the solver reads from the bus, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from contracts import topics
from contracts.errors import AddressError, ContractsError, DecodeError
from contracts.ids import DeviceID, GangUID, NodeName
from contracts.messages import (
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    NodeSeen,
    ObjectObserved,
    SubmitGang,
)
from contracts.topics import Topic
from runtime.wire import Incoming, Received
from solver.service.intake import snapshot_message
from solver.snapshot.maps import FrozenMap
from solver.snapshot.snapshot import InventoryExpired, NodePresence, Snapshot, apply
from tests.builders import devices, gang, pool
from tests.builders.problems import CLUSTER

A = NodeName("a")


def received(subject: str, data: bytes) -> Received:
    return Received(subject=subject, data=data, sequence=1, time_s=0.0)


def test_a_message_that_contradicts_its_subject_is_refused() -> None:
    """A submission belongs on the subject of its namespace and uid only."""
    uid = GangUID("00000000-0000-4000-8000-000000000001")
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=gang(namespace="ns"))
    data = topics.SUBMISSIONS.codec.encode(message)
    right = received(topics.SUBMISSIONS.subject(CLUSTER, "ns", uid), data)
    incoming = Incoming.of(topics.SUBMISSIONS, right)
    assert snapshot_message(incoming) == message
    wrong = received(topics.SUBMISSIONS.subject(CLUSTER, "other", uid), data)
    with pytest.raises(AddressError, match="belongs to"):
        Incoming.of(topics.SUBMISSIONS, wrong)


def test_nothing_is_left_of_an_agent_that_is_silent_for_long() -> None:
    """When its messages have expired it was never there."""
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
    for topic in (topics.INVENTORIES, topics.HEALTH):
        gone = snapshot_message(Incoming.end(topic, topic.subject(CLUSTER, A)))
        assert isinstance(gone, InventoryExpired | HealthJudged)
        snapshot = apply(snapshot, gone)
    inventory = snapshot.inventory
    assert not list(inventory.pages)
    kept = {name: getattr(inventory, name) for name in inventory.__struct_fields__}
    maps = {name: of for name, of in kept.items() if isinstance(of, FrozenMap)}
    assert {name: list(of) for name, of in maps.items() if len(of)} == {}


@pytest.mark.parametrize("place", ["slice", "device"])
def test_a_slice_of_which_no_node_can_be_told_is_refused(place: str) -> None:
    """kube-scheduler would give no pod devices then; we go on without the slice."""
    label = {"key": "rank", "operator": "Gt", "values": ["high"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [label]}]}
    spec: dict[str, Any] = {"driver": "d", "pool": {"name": "p"}}
    if place == "slice":
        spec["nodeSelector"] = selector
    else:
        devices = [{"name": "a"}, {"name": "b", "nodeSelector": selector}]
        spec |= {"devices": devices, "perDeviceNodeSelection": True}

    def hear() -> object:
        raw = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "odd"},
            "spec": spec,
        }
        message = ObjectObserved(
            cluster=CLUSTER, kind="ResourceSlice", key="odd", object=raw
        )
        data = topics.STATE.codec.encode(message)
        subject = topics.STATE.subject(CLUSTER, "ResourceSlice", "odd")
        return snapshot_message(Incoming.of(topics.STATE, received(subject, data)))

    with pytest.raises(DecodeError, match=r"ResourceSlice odd: .*values\[0\]: Invalid"):
        hear()
    label["values"] = ["4"]
    assert isinstance(hear(), ObjectObserved)


def test_a_heartbeat_changes_nothing_in_the_snapshot() -> None:
    """Who is alive is judged by the service, not believed from messages."""
    data = topics.HEARTBEATS.codec.encode(NodeSeen(cluster=CLUSTER, node=A))
    beat = received(topics.HEARTBEATS.subject(CLUSTER, A), data)
    assert snapshot_message(Incoming.of(topics.HEARTBEATS, beat)) is None


@pytest.mark.parametrize("topic", topics.TOPICS, ids=lambda topic: topic.entity)
def test_a_subject_that_nobody_of_us_makes_is_refused(topic: Topic[Any]) -> None:
    """Such a message stays in its stream: whoever fails on it fails at each start."""
    subject = topic.any_subject.replace("*", "=FF")
    with pytest.raises(ContractsError, match="=FF"):
        Incoming.of(topic, received(subject, b"{}"))
