"""Pods on nodes as others' rules see them, and who is tried again for their sake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from contracts.gang import Gang
from contracts.ids import GangKey, GangUID, Namespace
from contracts.messages import ObjectGone
from contracts.names import GANG_UID
from contracts.pod_terms import HostPort
from contracts.pods.node_affinity import REQUIRED
from contracts.pods.pod_rules import rules_of_node
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.snapshot.node_state import NodeUse, list_running
from solver.snapshot.running import RunningPod, running_of_member, running_of_pod
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import member, pod
from tests.builders.neighbours import apart, caring, near, spread, term, zoned
from tests.builders.problems import CLUSTER, observe_core


def tried_again(snapshot: Snapshot, then: Callable[[Snapshot], Snapshot]) -> bool:
    """Say whether a gang that was tried in vain is tried again for what happened."""
    snapshot = snapshot.without_grown()
    queue = GangQueue()
    for record in snapshot.waiting.values():
        queue.follow(record)
    assert queue.choose(snapshot, BatchLimits())
    assert not queue.choose(snapshot, BatchLimits())
    snapshot = then(snapshot)
    queue.wake(snapshot, snapshot.grown)
    return bool(queue.choose(snapshot, BatchLimits()))


def ready(gang: Gang, *then: Any) -> bool:
    """Say whether a gang is tried again once something happened."""
    return tried_again(zoned("a", gangs=[gang]), lambda s: observe_core(s, *then))


def test_a_pod_more_lets_those_be_tried_again_who_look_for_pods() -> None:
    """Near to it, or spread; to who asks nothing of pods it is only in the way."""
    arrived = pod("r", labels={"app": "x"}, node_name="n0", phase="Running")
    assert ready(caring(affinity=near(term())), arrived)
    assert ready(caring(topology_spread_constraints=(spread(),)), arrived)
    assert not ready(caring(), arrived)


def test_a_pod_that_loses_its_label_lets_those_be_tried_again_who_keep_apart() -> None:
    """It is no longer one of those that they may not be beside."""
    meant = pod("r", labels={"app": "x"}, node_name="n0", phase="Running")
    waiting = caring(affinity=apart(term()))
    snapshot = zoned("a", gangs=[waiting], running=[meant])
    other = structs.replace(meant, metadata=structs.replace(meant.metadata, labels={}))
    assert tried_again(snapshot, lambda s: observe_core(s, other))


def test_a_pod_that_kept_others_away_lets_all_be_tried_again_when_it_goes() -> None:
    """Even where no amount of the node is known."""
    keeper = pod("r", node_name="n0", affinity=apart(term()), phase="Running")
    snapshot = zoned("a", gangs=[caring()], running=[keeper])
    gone = ObjectGone(cluster=CLUSTER, kind="Pod", key="team-a/r")
    assert tried_again(snapshot, lambda s: apply(s, gone))


def test_what_runs_is_what_a_decided_gang_was_or_its_pods_whichever_is_more() -> None:
    """Pods of the gang that ran before it was decided again are kept beside it."""
    key = GangKey(Namespace("ns"), GangUID("g"))
    decided = running_of_member("ns", member(labels={"app": "x"}), 2)
    bound = RunningPod(namespace=decided.namespace, labels={"app": "x", "i": "0"})
    before = RunningPod(namespace=decided.namespace, labels={"app": "old"})
    gang_use = NodeUse(amounts={}, gang=key, decided=True, pods=(decided,))
    pods = [NodeUse(amounts={}, gang=key, pods=(each,)) for each in (bound, before)]
    assert list_running([gang_use, pods[0]]) == [decided]
    assert list_running([gang_use, pods[0], pods[0]]) == [bound, bound]
    assert list_running([gang_use, pods[1]]) == [decided, before]
    alone = NodeUse(amounts={}, pods=(before,))
    assert list_running([alone, gang_use]) == [before, decided]


def test_a_pod_is_read_with_its_labels_ports_and_terms() -> None:
    """And with whether it is going."""
    item = pod(
        "r",
        labels={"app": "x"},
        annotations={GANG_UID: "g"},
        affinity=apart(term()),
        host_network=True,
    )
    found = running_of_pod(item)
    assert (found.labels, len(found.apart)) == ({"app": "x"}, 1)
    assert not found.terminating


def test_whom_a_pod_wants_near_does_not_say_whom_it_keeps_away() -> None:
    """An affinity that cannot be read ties the pod, which runs, and nobody else."""
    strange = {"podAffinity": {REQUIRED: 1}}
    assert running_of_pod(pod("r", affinity=strange)).apart == ()
    assert running_of_member("ns", member(affinity=strange), 1).apart == ()


def test_a_port_without_a_protocol_is_one_of_tcp() -> None:
    """And without an address one of every address."""
    bare = member(host_ports=(HostPort(port=80, protocol="", ip=""),))
    assert running_of_member("ns", bare, 1).ports == (HostPort(port=80),)
    assert rules_of_node("ns", bare.node).ports == (HostPort(port=80),)
