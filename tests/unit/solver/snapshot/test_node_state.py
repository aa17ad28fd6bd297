"""What is left of a node follows from what it has and who uses it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.ids import GangKey, GangUID, Namespace, NodeName
from contracts.workload import Node, NodeTaint
from solver.snapshot.node_state import NodeState, NodeUse, make_node_part
from solver.snapshot.parts import NodePart
from tests.builders import node, quantities

NAME = NodeName("n")


def part_of(*uses: NodeUse, names_nodes: bool = True, **state: Any) -> NodePart:
    """Put a node's part together."""
    return make_node_part(NAME, NodeState(**state), uses, names_nodes=names_nodes)


def cpu(thousandths: int, gang: str = "", *, decided: bool = False) -> NodeUse:
    """Use some CPU: as a pod, of a gang or alone, or as a decided gang."""
    amounts = {"cpu": thousandths}
    return NodeUse(
        amounts=amounts, gang=key_of(gang) if gang else None, decided=decided
    )


def key_of(uid: str, namespace: str = "team") -> GangKey:
    """Name a gang."""
    return GangKey(Namespace(namespace), GangUID(uid))


def test_pods_of_another_namespace_do_not_hide_under_a_decided_gang() -> None:
    """Whoever writes its uid on a pod that runs has a pod of his own."""
    decided = cpu(3000, "g", decided=True)
    elsewhere = NodeUse(amounts={"cpu": 2000}, gang=key_of("g", "other-tenant"))
    left = part_of(decided, elsewhere, resources=quantities({"cpu": 8}))
    assert left.free == {"cpu": 3000}


@pytest.mark.parametrize(
    ("uses", "left"),
    [
        ((), 8000),
        ((cpu(1000), cpu(1000)), 6000),
        ((cpu(3000, "g", decided=True), cpu(1000, "g")), 5000),
        ((cpu(1000, "g", decided=True), cpu(3000, "g")), 5000),
        ((cpu(1000, "g", decided=True), cpu(3000, "h")), 4000),
        ((cpu(9000),), -1000),
    ],
)
def test_a_gang_and_its_pods_count_as_whichever_is_more(
    uses: tuple[NodeUse, ...], left: int
) -> None:
    """Pods of other gangs, and of none, are counted beside it."""
    found = part_of(*uses, node=node(NAME, allocatable={"cpu": 8}))
    assert found.free == {"cpu": left}


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"announced": True}, "no Node"),
        ({"announced": True, "away": True, "node": node()}, "away"),
        ({"away": True, "node": node()}, ""),
        ({"node": node(ready=False)}, "not ready"),
        ({"node": node(ready=None)}, ""),
    ],
)
def test_a_node_says_why_nothing_may_be_placed(state: Any, why: str) -> None:
    """An agent that is away counts only where there was one."""
    assert part_of(**state).unavailable == why


def test_without_any_node_object_agents_are_enough() -> None:
    """Where Kubernetes names no nodes, what agents announce may be used."""
    assert part_of(announced=True, names_nodes=False).unavailable == ""


def test_what_the_node_object_says_wins_over_its_agent() -> None:
    """Labels are put together, resources are the Node's where it has some."""
    state: dict[str, Any] = {
        "labels": {"zone": "a", "rack": "1"},
        "resources": quantities({"cpu": 1}),
    }
    alone = part_of(**state, announced=True)
    assert (alone.labels, alone.free) == ({"zone": "a", "rack": "1"}, {"cpu": 1000})
    both = part_of(**state, node=node(NAME, labels={"zone": "b"}))
    assert (both.labels["zone"], both.labels["rack"]) == ("b", "1")
    assert both.free is not None
    assert both.free["cpu"] == 64_000


def test_only_what_keeps_pods_away_is_kept_of_taints() -> None:
    """A preference decides nothing, so it makes no kinds of node."""
    taints = (
        NodeTaint(key="a", effect="PreferNoSchedule"),
        NodeTaint(key="b", effect="NoExecute"),
    )
    assert [t.key for t in part_of(node=node(NAME, taints=taints)).taints] == ["b"]


def test_a_node_of_which_nobody_has_said_what_it_has_limits_nothing() -> None:
    """None is not zero."""
    assert part_of(node=Node()).free is None
