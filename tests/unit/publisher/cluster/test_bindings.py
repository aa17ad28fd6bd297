"""A gang is bound when the last of its pods has a node."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.ids import NodeName
from publisher.cluster.bindings import Bindings
from publisher.gangs.view import GroupKey
from tests import builders

GROUP = GroupKey("team-a", "train")
WAITS = builders.pod()
BOUND = replace(WAITS, spec=replace(WAITS.spec, node_name=NodeName("a")))


def test_it_is_told_once_when_the_last_pod_is_bound() -> None:
    bindings = Bindings()
    bindings.note_opened(GROUP, 5, 10.0)
    assert bindings.look(GROUP, [BOUND, WAITS], 11.0) is None
    assert bindings.look(GROUP, [BOUND, BOUND], 12.5) == ("team-a", 5, 2.5)
    assert bindings.look(GROUP, [BOUND, BOUND], 13.0) is None


def test_who_is_gone_before_it_is_bound_is_not_measured() -> None:
    bindings = Bindings()
    bindings.note_opened(GROUP, 0, 10.0)
    assert bindings.look(GROUP, [], 11.0) is None
    assert bindings.look(GROUP, [BOUND], 12.0) is None


def test_a_group_whose_gates_were_not_opened_here_is_not_measured() -> None:
    assert Bindings().look(GROUP, [BOUND], 1.0) is None
