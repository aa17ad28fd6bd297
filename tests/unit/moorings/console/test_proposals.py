"""Which changes are shown for a gang that waits, and as which what-ifs."""

from __future__ import annotations

from contracts.ids import GangKey, GangUID, Namespace, NodeName
from moorings.console.proposals import make_what_if, narrow
from moorings.console.what_if import WhatIf
from solver.allocate import allocate
from solver.timeline.changes import SmallestChange
from tests import builders
from tests.builders.problems import problem_of, snapshot_of

NODES = {"a": [builders.pool(*builders.devices(4), name="a")]}
GANGS = [
    builders.gang(builders.member(count=3), name="first", uid="u1", priority=1),
    builders.gang(builders.member(count=4), name="second", uid="u2"),
    builders.gang(builders.member(count=5), name="third", uid="u3"),
]
FIRST, SECOND = (
    GangKey(Namespace(builders.NAMESPACE), GangUID(uid)) for uid in ("u1", "u2")
)
PROBLEM = problem_of(snapshot_of(NODES, GANGS))


def what_if_of(change: SmallestChange) -> WhatIf:
    (gang,) = [part for part in PROBLEM.gangs if part.key == SECOND]
    return make_what_if(change, gang, PROBLEM, {FIRST: "x/first"})


def test_who_waits_behind_does_not_matter() -> None:
    narrowed = narrow(PROBLEM, allocate(PROBLEM), SECOND)
    assert [gang.name for gang in narrowed.gangs] == ["first", "second"]


def test_who_was_decided_with_it_is_left_out_when_it_ends() -> None:
    """It held nothing when the question was recorded."""
    change = SmallestChange(sort="end", text="", helps=True, end=(FIRST,))
    assert what_if_of(change) == WhatIf(end=("x/first",), leave_out=("u1",))


def test_each_kind_of_change_is_a_what_if() -> None:
    nodes = SmallestChange(
        sort="nodes", text="", helps=True, nodes=2, like=NodeName("a")
    )
    fewer = SmallestChange(sort="fewer", text="", helps=True, pods={"worker": 3})
    relax = SmallestChange(sort="relax", text="", helps=True, without="topology/0")
    heal = SmallestChange(sort="heal", text="", helps=True, heal=True)
    assert what_if_of(nodes) == WhatIf(add_nodes=2, like="a")
    assert what_if_of(fewer) == WhatIf(pods={"u2/worker": 3})
    assert what_if_of(relax) == WhatIf(without=("u2/topology/0",))
    assert what_if_of(heal) == WhatIf(heal=True)
