"""Rules of gangs hold over pods that have their place and those that are added."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Gang
from contracts.ids import NodeName
from contracts.messages import SubmitGang
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    DRIVER,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.growing import asking, end, key
from tests.builders.problems import CLUSTER, observe_core, snapshot_of
from tests.builders.solving import Solving

RACK = "example.com/rack"
pytestmark = pytest.mark.usefixtures("batch_sizes")


def railed(solving_gangs: tuple[Gang, ...]) -> Snapshot:
    """Two racks of two nodes with two devices each, of one rail a rack."""
    pools, nodes = {}, []
    for name, (rack, rail, power) in NODES.items():
        content = [
            device(f"gpu-{n}", attributes={"rail": rail, "power": f"{power}{n}"})
            for n in range(2)
        ]
        pools[name] = [pool(*content, name=name)]
        nodes.append(node(name, labels={RACK: rack}))
    return observe_core(snapshot_of(pools, solving_gangs), *nodes)


def nodes_of(solving: Solving, number: int) -> list[str]:
    return [str(pod.node) for pod in solving.placed(key(number)).members]


NODES = {
    "a0": ("a", "0", "p"),
    "a1": ("a", "0", "q"),
    "b0": ("b", "1", "p"),
    "b1": ("b", "1", "q"),
}


@pytest.mark.parametrize(
    "rules",
    [
        {"topology": (topology_rule(RACK),)},
        {"topology": (topology_rule(f"attribute:{DRIVER}/rail"),)},
        {"constraints": (gang_constraint(f"{DRIVER}/rail"),)},
        {"constraints": (gang_constraint(f"{DRIVER}/rail", scope="Member"),)},
    ],
    ids=["rack", "attribute", "match", "match Member"],
)
def test_new_pods_go_where_the_old_ones_are(rules: Any) -> None:
    """Though there is more room elsewhere; and wait while there is none."""
    blockers = [pinned(number, f"a{number % 2}") for number in (1, 2, 3)]
    growing = asking(4, 4, 1, **rules)
    solving = Solving(railed((*blockers, pinned(5, "b0"), pinned(6, "b1"))))
    solving.decide()
    solving.hear(SubmitGang(cluster=CLUSTER, uid=key(4).uid, gang=growing))
    solving.decide()
    began = nodes_of(solving, 4)
    assert len(began) == 2
    assert {NODES[name][0] for name in began} == {"b"}
    for number in (1, 2, 3):
        end(solving, number)
    solving.decide()
    assert nodes_of(solving, 4) == began
    end(solving, 5)
    solving.decide()
    assert [NODES[name][0] for name in nodes_of(solving, 4)] == ["b"] * 3


def test_two_gangs_grow_at_once_each_on_its_rail() -> None:
    """Though all pods of both have room, and another rail has more."""
    rules: dict[str, Any] = {"constraints": (gang_constraint(f"{DRIVER}/rail"),)}
    names = ("a0", "a0", "a1", "b0", "b0", "b1")
    solving = Solving(railed(tuple(pinned(n, name) for n, name in enumerate(names))))
    solving.decide()
    for number in (8, 9):
        growing = asking(number, 2, 1, **rules)
        solving.hear(SubmitGang(cluster=CLUSTER, uid=key(number).uid, gang=growing))
    solving.decide()
    began = {number: nodes_of(solving, number) for number in (8, 9)}
    assert sorted(began.values()) == [["a1"], ["b1"]]
    for number in range(len(names)):
        end(solving, number)
    solving.decide()
    for number, (first,) in began.items():
        rails = [NODES[name][1] for name in nodes_of(solving, number)]
        assert rails == [NODES[first][1]] * 2


def pinned(number: int, name: str) -> Gang:
    """Ask for one device of a node."""
    wanted = member(member_claim(request()), count=1, node_name=NodeName(name))
    return gang(wanted, name=f"g{number}", uid=key(number).uid, namespace="default")


def test_groups_are_filled_where_they_began() -> None:
    """The second pod of a group goes where the first is; the next group is free."""
    rules: dict[str, Any] = {"topology": (topology_rule(RACK, group_size=2),)}
    names = ("a0", "a0", "a1", "a1", "b0", "b0", "b1")
    solving = Solving(railed(tuple(pinned(n, name) for n, name in enumerate(names))))
    solving.decide()
    growing = asking(8, 4, 1, **rules)
    solving.hear(SubmitGang(cluster=CLUSTER, uid=key(8).uid, gang=growing))
    solving.decide()
    found = []
    for freed in ((0, 1), (4,)):
        found.append([NODES[name][0] for name in nodes_of(solving, 8)])
        for number in freed:
            end(solving, number)
        solving.decide()
    found.append([NODES[name][0] for name in nodes_of(solving, 8)])
    assert found == [["b"], ["b"], ["b", "b", "a", "a"]]


def test_what_spreads_counts_the_old_ones() -> None:
    """One pod a rack: a third has no place, wherever there is room."""
    spread = {"topology": (topology_rule(RACK, max_per_domain=1),)}
    distinct = {"constraints": (gang_constraint(distinct=f"{DRIVER}/power"),)}
    for rules, most in ((spread, 2), (distinct, 4)):
        blockers = [pinned(n, name) for n, name in enumerate(("b0", "b0", "b1", "b1"))]
        solving = Solving(railed(tuple(blockers)))
        solving.decide()
        growing = asking(8, 6, 1, **rules)
        solving.hear(SubmitGang(cluster=CLUSTER, uid=key(8).uid, gang=growing))
        solving.decide()
        began = nodes_of(solving, 8)
        for number in range(4):
            end(solving, number)
            solving.decide()
        assert nodes_of(solving, 8)[: len(began)] == began
        assert len(nodes_of(solving, 8)) == most


def test_who_breaks_a_rule_already_gets_no_more_pods() -> None:
    """A node that changed its rack: nothing that is added could mend it."""
    rules: dict[str, Any] = {"topology": (topology_rule(RACK),)}
    solving = Solving(railed((pinned(1, "a0"), pinned(3, "b0"))))
    solving.decide()
    growing = asking(2, 4, 3, **rules)
    solving.hear(SubmitGang(cluster=CLUSTER, uid=key(2).uid, gang=growing))
    solving.decide()
    rack = NODES[nodes_of(solving, 2)[0]][0]
    moved = node(f"{rack}1", labels={RACK: "c"})
    solving.snapshot = observe_core(solving.snapshot, moved)
    for number in (1, 3):
        end(solving, number)
    solving.decide()
    (answer,) = solving.decisions[-1].gangs
    assert answer.reasons[0].field == "spec.topology[0]"
    assert len(nodes_of(solving, 2)) == 3
