"""Rules between pods: what runs decides node sets, what is on one node is counted."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.pod_terms import HostPort
from contracts.workload import Pod
from solver.engines.choose import DIRECT, PATTERN
from solver.kinds.pod_rules import settle_rules
from tests.builders import devices, gang, member, node, pool
from tests.builders.neighbours import (
    HOST,
    ZONE,
    apart,
    caring,
    decide,
    near,
    nodes_of,
    rule_of,
    running,
    term,
    with_port,
    zoned,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of


def test_a_plain_batch_is_not_touched() -> None:
    """Labels alone are no rule: kinds and engines never hear of them."""
    problem = problem_of(zoned("a", gangs=[caring(2)], running=[running("n0")]))
    assert problem.neighbours == ()
    assert settle_rules(problem) is problem


def test_pods_that_must_be_apart_get_a_node_each() -> None:
    """By counting: the pattern engine decides, and a third has no room."""
    asks: dict[str, Any] = {"affinity": apart(term())}
    found = decide(zoned("a", "a", gangs=[caring(2, **asks)]))
    assert sorted(nodes_of(found)) == ["n0", "n1"]
    assert found.statistics.engine == PATTERN
    found = decide(zoned("a", "a", gangs=[caring(3, **asks)]))
    (reason,) = found.gangs[0].reasons
    assert reason.rule is Rule.POD_APART
    assert reason.facts["room"] == 2
    assert "app=x" in reason.message


def test_pods_that_are_only_meant_share_a_node_but_not_with_who_keeps_it() -> None:
    """One sort takes all of a node, the other a part."""
    workers = member(
        name="worker", count=2, labels={"app": "x"}, affinity=apart(term())
    )
    watchers = member(name="watcher", count=2, labels={"app": "x"})
    both = gang(workers, watchers)
    found = decide(zoned("a", "a", "a", gangs=[both]))
    assert found.statistics.engine == PATTERN
    on = nodes_of(found)
    assert len(set(on[:2])) == 2
    assert on[2] == on[3]
    assert on[2] not in on[:2]
    assert rule_of(decide(zoned("a", "a", gangs=[both]))) is not None


def test_two_sorts_that_keep_each_other_away_go_to_the_direct_model() -> None:
    """Amounts cannot say that each sort may be many, and both may not."""
    loud = member(name="loud", count=2, labels={"app": "y"}, affinity=apart(term()))
    calm = member(name="calm", count=2, labels={"app": "x"})
    found = decide(zoned("a", "a", gangs=[gang(loud, calm)]))
    assert found.statistics.engine == DIRECT
    on = nodes_of(found)
    assert (on[0], on[2]) == (on[1], on[3])
    assert on[0] != on[2]


@pytest.mark.parametrize("key", [HOST, ZONE])
def test_pods_that_run_keep_their_domain(key: str) -> None:
    """Both ways: whom the newcomer avoids, and who avoids the newcomer."""
    cases: list[tuple[dict[str, Any], Pod]] = [
        ({"affinity": apart(term(key))}, running("n0")),
        ({}, running("n0", app="y", affinity=apart(term(key)))),
    ]
    for asks, other in cases:
        found = decide(zoned("a", "b", gangs=[caring(2, **asks)], running=[other]))
        if asks and key == ZONE:
            assert rule_of(found) is Rule.POD_APART  # one zone for two
            continue
        assert "n0" not in nodes_of(found)
        alone = decide(zoned("a", gangs=[caring(1, **asks)], running=[other]))
        (reason,) = alone.gangs[0].reasons
        assert reason.rule is Rule.POD_APART
        assert "n0" in reason.message


def test_pods_in_other_namespaces_are_meant_only_where_a_term_says_so() -> None:
    """The default is the pod's own."""
    other = running("n0", namespace="other")
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["n0"]),
        ({"namespaceSelector": {}}, []),
    ]
    for more, nodes in cases:
        asks: dict[str, Any] = {"affinity": apart(term(**more))}
        assert (
            nodes_of(decide(zoned("a", gangs=[caring(**asks)], running=[other])))
            == nodes
        )


@pytest.mark.parametrize("key", [HOST, ZONE])
def test_pods_go_where_those_are_that_they_need_near(key: str) -> None:
    """Known beforehand, so any engine decides; without them nobody goes anywhere."""
    asks: dict[str, Any] = {"affinity": near(term(key, app="y"))}
    there = [running("n1", app="y")]
    found = decide(zoned("a", "b", gangs=[caring(2, **asks)], running=there))
    assert nodes_of(found) == ["n1", "n1"]
    assert found.statistics.engine == PATTERN
    assert rule_of(decide(zoned("a", "b", gangs=[caring(2, **asks)]))) is Rule.POD_NEAR


def test_a_series_of_pods_that_need_each_other_is_together() -> None:
    """The first is let in alone, so the others follow it, and nobody is elsewhere."""
    asks: dict[str, Any] = {"affinity": near(term(ZONE))}
    found = decide(zoned("a", "b", "b", gangs=[caring(6, **asks)]))
    assert set(nodes_of(found)) == {"n1", "n2"}
    assert found.statistics.engine == DIRECT
    found = decide(zoned("a", "b", gangs=[caring(6, **asks)]))
    (reason,) = found.gangs[0].reasons
    assert reason.rule is Rule.POD_NEAR
    assert ZONE in reason.message


def test_a_lone_pod_that_means_itself_needs_only_the_label() -> None:
    """No model is needed for it."""
    asks: dict[str, Any] = {"affinity": near(term(ZONE))}
    found = decide(zoned("", "b", gangs=[caring(1, **asks)]))
    assert nodes_of(found) == ["n1"]
    assert found.statistics.engine == PATTERN


def test_a_series_follows_those_that_run() -> None:
    """Where one runs, the first is not let in elsewhere."""
    asks: dict[str, Any] = {"affinity": near(term(ZONE))}
    there = [running("n1")]
    found = decide(zoned("a", "b", gangs=[caring(2, **asks)], running=there))
    assert nodes_of(found) == ["n1", "n1"]


def _pair(first: dict[str, Any], second: dict[str, Any]) -> Gang:
    return gang(
        member(name="one", labels={"app": "x"}, affinity=first),
        member(name="two", labels={"app": "y"}, affinity=second),
    )


def test_a_pod_may_rely_on_one_of_its_gang() -> None:
    """That is bound first, whatever the order in which they are tried."""
    found = decide(zoned("a", "b", gangs=[_pair(near(term(ZONE, app="y")), {})]))
    on = nodes_of(found)
    assert on[0] == on[1]


def test_two_pods_that_wait_for_each_other_are_not_decided() -> None:
    """Neither is let in before the other: they would wait for ever."""
    mutual = _pair(near(term(ZONE, app="y")), near(term(ZONE, app="x")))
    assert rule_of(decide(zoned("a", gangs=[mutual]))) is Rule.POD_NEAR


def test_gangs_of_one_series_are_together_or_not_both_in() -> None:
    """Else the second would be refused once the first is bound."""
    asks: dict[str, Any] = {"affinity": near(term(ZONE)), "count": 3}
    both = [caring(number=number, **asks) for number in (1, 2)]
    found = decide(zoned("a", "b", gangs=both))
    assert [bool(each.members) for each in found.gangs] == [True, False]
    found = decide(zoned("a", "b", "b", gangs=both))
    assert {*nodes_of(found), *nodes_of(found, 1)} == {"n1", "n2"}


def test_a_port_of_a_node_is_had_once() -> None:
    """By pods that run, and by those of a batch; addresses may differ."""
    asks: dict[str, Any] = {"host_ports": (HostPort(port=80),)}
    found = decide(zoned("a", "a", gangs=[caring(2, **asks)]))
    assert sorted(nodes_of(found)) == ["n0", "n1"]
    assert found.statistics.engine == PATTERN
    taken = [with_port(running("n0"), 80, "10.0.0.1")]
    found = decide(zoned("a", "a", gangs=[caring(2, **asks)], running=taken))
    (reason,) = found.gangs[0].reasons
    assert reason.rule is Rule.NODE_PORTS
    assert "TCP 80" in reason.message
    other: dict[str, Any] = {"host_ports": (HostPort(port=80, ip="10.0.0.2"),)}
    assert nodes_of(decide(zoned("a", gangs=[caring(**other)], running=taken))) == [
        "n0"
    ]


def test_one_address_and_all_of_them_clash_in_a_batch() -> None:
    """Two single addresses do not."""
    asks = [HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.2")]
    gangs = [caring(number=i, host_ports=(port,)) for i, port in enumerate(asks)]
    assert all(each.members for each in decide(zoned("a", gangs=gangs)).gangs)
    gangs[1] = caring(number=1, host_ports=(HostPort(port=80),))
    assert (
        sum(bool(each.members) for each in decide(zoned("a", gangs=gangs)).gangs) == 1
    )


def test_a_label_in_which_pods_differ_is_taken_for_the_worse() -> None:
    """Apart: they may be meant. Near: nobody can say, which is no yes."""
    avoiding = caring(number=1, affinity=apart(term(app="1")))
    varied = member(name="v", varying_labels=("app",))
    both = [
        avoiding,
        gang(varied, name="v", uid="00000000-0000-4000-8000-000000000009"),
    ]
    found = decide(zoned("a", gangs=both))
    assert sum(bool(each.members) for each in found.gangs) == 1
    needing = caring(number=1, affinity=near(term(app="1")))
    found = decide(zoned("a", gangs=[needing, both[1]]))
    (reason,) = found.gangs[0].reasons
    assert (reason.rule, reason.field) == (
        Rule.NOT_MODELLED,
        "spec.members[].node.affinity.podAffinity",
    )
    assert found.gangs[1].members


def test_values_of_a_label_that_two_nodes_share_are_one_domain() -> None:
    """Even the host name's, where somebody gave it twice."""
    nodes = [node(name, labels={HOST: "same"}) for name in ("n0", "n1")]
    pools = {name: (pool(*devices(2), name=name),) for name in ("n0", "n1")}
    asks: dict[str, Any] = {"affinity": apart(term())}
    snapshot = observe_core(snapshot_of(pools, [caring(2, **asks)]), *nodes)
    assert rule_of(decide(snapshot)) is Rule.POD_APART


def test_many_gangs_that_must_be_apart_are_all_in() -> None:
    """Each has a rule of its own: the direct model counts them all."""
    gangs = [
        caring(
            4, app=f"g{number}", number=number, affinity=apart(term(app=f"g{number}"))
        )
        for number in range(20)
    ]
    found = decide(zoned(*["a"] * 24, gangs=gangs))
    assert all(len(set(nodes_of(found, number))) == 4 for number in range(20))
    assert found.statistics.engine == DIRECT
