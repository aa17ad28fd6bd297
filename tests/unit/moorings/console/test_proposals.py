"""Which changes are shown for a gang that waits, and as which what-ifs."""

from __future__ import annotations

from contracts.ids import GangKey, GangUID, Namespace, NodeName
from moorings.console.proposals import (
    make_what_if,
    narrow,
    view_change,
    view_cluster_change,
)
from moorings.console.what_if import WhatIf
from solver.allocate import allocate
from solver.timeline.changes import SmallestChange
from solver.timeline.quota_raises import QuotaRaise
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


def test_a_row_has_the_what_if_that_can_be_tried() -> None:
    change = SmallestChange(sort="heal", text="well again", helps=True, heal=True)
    assert view_change(change, what_if_of(change)) == {
        "text": "well again",
        "helps": True,
        "reasons": [],
        "whatIf": {"heal": True},
    }


def test_quota_and_time_are_told_as_numbers_too() -> None:
    """No recorded solve can be asked about them."""
    limit = QuotaRaise(
        name="q", flavor="f", resource="cpu", is_limit=True, amount=500, instead_of=0
    )
    quota = SmallestChange(sort="quota", text="more", helps=True, quotas=(limit,))
    row = view_cluster_change(quota, now_s=0)
    assert (row["text"], row["whatIf"]) == ("more", None)
    assert row["quotas"] == [
        {
            "kind": "ClusterQueue",
            "name": "q",
            "field": "borrowingLimit",
            "flavor": "f",
            "resource": "cpu",
            "amount": "500m",
            "insteadOf": "0",
        }
    ]
    wait = SmallestChange(sort="wait", text="", helps=True, start_s=7200, proven=True)
    row = view_cluster_change(wait, now_s=0)
    assert row["text"].startswith("it waits until 1970-01-01 ")
    assert row["text"].endswith(" (2h0m), proven")
    assert (row["startsAt"], row["proven"]) == ("1970-01-01T02:00:00Z", True)
