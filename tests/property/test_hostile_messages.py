"""Whatever somebody says to the solver, nothing ends, and the others are decided.

Messages that can be read, as extreme as their types allow, through every reader: the
bus' edge, the Snapshot, the Problem, the engines, the judge, explanations and records.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contracts import messages, topics
from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.codec import encode
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.topics import Topic
from contracts.workload import Node, Pod
from runtime.refusals import Refusals
from runtime.wire import Incoming, Received
from solver.allocate import allocate
from solver.decision import DECISION
from solver.service.intake import snapshot_message
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import devices, gang, member, member_claim, node, pool, request
from tests.builders.problems import CLUSTER, observe_core, problem_of, snapshot_of
from tests.draw import hostile

INNOCENT = gang(member(member_claim(request())), name="innocent")
UID = "00000000-0000-4000-8000-000000000bad"
SOME = settings(
    suppress_health_check=list(HealthCheck),
)
GANG_WORDS: dict[Topic[Any], Any] = {
    topics.SUBMISSIONS: messages.SubmissionMessage,
    topics.COMMANDS: messages.CommandMessage,
    topics.DECISIONS: messages.DecisionMessage,
    topics.CONFIRMATIONS: messages.ConfirmationMessage,
}
NODE_WORDS: dict[Topic[Any], Any] = {
    topics.INVENTORIES: messages.InventoryMessage,
    topics.HEALTH: messages.HealthMessage,
}
OBJECTS = {
    Node: "v1",
    Pod: "v1",
    ResourceSlice: "resource.k8s.io/v1",
    ResourceClaim: "resource.k8s.io/v1",
    ResourceClaimTemplate: "resource.k8s.io/v1",
    DeviceClass: "resource.k8s.io/v1",
    DeviceTaintRule: "resource.k8s.io/v1alpha3",
}
Words = tuple[Topic[Any], Any]
"""A topic, and a body that decodes as one of its messages."""


def words_of_node(topic: Topic[Any]) -> st.SearchStrategy[Words]:
    """Draw what an agent may say."""
    kind = NODE_WORDS[topic]
    bodies = hostile.bodies(kind, cluster=CLUSTER, node="bad")
    return st.tuples(st.just(topic), bodies)


def words_of_gang(topic: Topic[Any]) -> st.SearchStrategy[Words]:
    """Draw what may be said of a gang."""
    kind = GANG_WORDS[topic]
    bodies = hostile.bodies(kind, cluster=CLUSTER, namespace="evil", uid=UID)
    return st.tuples(st.just(topic), bodies)


def object_of(kind: Any) -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw an object of a kind."""
    return st.tuples(st.just(kind), hostile.objects(kind, "bad", OBJECTS[kind]))


def hear(
    snapshot: Snapshot, topic: Topic[Any], names: tuple[str, ...], said: Any
) -> Snapshot:
    """Take in a message as the service does; one that is refused changes nothing."""
    subject = topic.subject(*names)
    received = Received(subject=subject, data=encode(said), sequence=7, time_s=0.0)
    refusals = Refusals()
    with refusals.guard(received):
        message = snapshot_message(Incoming.of(topic, received))
        if message is not None:
            snapshot = apply(snapshot, message, sequence=7)
    return snapshot


def decide_innocent(snapshot: Snapshot) -> None:
    """Decide all that wait, as service and worker do: who is innocent gets devices."""
    problem = problem_of(snapshot)
    assert sum(len(page.data) for page in problem.pages) < 64 << 20
    decision = allocate(problem)
    assert DECISION.decode(DECISION.encode(decision)) == decision
    found = {answer.name: answer for answer in decision.gangs}
    assert found["innocent"].verdict == "allocated"


def beside() -> Snapshot:
    """Make a node with devices, and a gang that fits on it."""
    snapshot = snapshot_of({"good": [pool(*devices(2), name="good")]}, [INNOCENT])
    return observe_core(snapshot, node(name="good"))


@SOME
@given(words=st.sampled_from([*NODE_WORDS]).flatmap(words_of_node))
def test_no_node_stops_the_decision_of_others(words: Words) -> None:
    """Whatever its agent says."""
    topic, said = words
    decide_innocent(hear(beside(), topic, (CLUSTER, "bad"), said))


@SOME
@given(said=st.tuples(*map(words_of_gang, GANG_WORDS)))
def test_no_gang_stops_the_decision_of_others(said: tuple[Words, ...]) -> None:
    """Whatever is said of it, in any of its streams."""
    snapshot = beside()
    for topic, body in said:
        snapshot = hear(snapshot, topic, (CLUSTER, "evil", UID), body)
    decide_innocent(snapshot)


def slice_of(*requirements: dict[str, Any]) -> tuple[Any, Any]:
    """Make a ResourceSlice of the nodes that meet these."""
    raw = {
        "apiVersion": OBJECTS[ResourceSlice],
        "kind": "ResourceSlice",
        "metadata": {"name": "bad"},
        "spec": {
            "driver": "",
            "pool": {"name": ""},
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchExpressions": [*requirements]}]
            },
        },
    }
    return ResourceSlice, raw


@SOME
@example(observed=slice_of({"key": "", "operator": ""}))
@example(observed=slice_of({"key": "a", "operator": "Gt", "values": ["x"]}))
@given(observed=st.sampled_from([*OBJECTS]).flatmap(object_of))
def test_no_object_stops_the_decision_of_others(observed: tuple[Any, Any]) -> None:
    """Whatever the API server is made to hold."""
    kind, raw = observed
    key = "evil/bad" if kind in (Pod, ResourceClaim, ResourceClaimTemplate) else "bad"
    said = {
        "type": "ObjectObserved",
        "cluster": CLUSTER,
        "kind": kind.__name__,
        "key": key,
        "object": raw,
    }
    names = (CLUSTER, kind.__name__, key)
    decide_innocent(hear(beside(), topics.STATE, names, said))
