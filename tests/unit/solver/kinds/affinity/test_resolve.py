"""Rules between pods and spread: what is known is counted, the rest is a rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.pod_terms import HostPort
from contracts.workload import Pod
from solver.engines.choose import DIRECT, PATTERN
from solver.kinds.affinity.resolve import resolve_affinity
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
    spread,
    term,
    with_port,
    zoned,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of


def test_a_plain_batch_is_not_touched() -> None:
    """Labels alone are no rule: kinds and engines never hear of them."""
    problem = problem_of(zoned("a", gangs=[caring(2)], running=[running("n0")]))
    assert problem.neighbours == ()
    assert resolve_affinity(problem) is problem


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


def spreading(count: int, *rules: Any, number: int = 1, **asks: Any) -> Gang:
    """Make a gang that is to be spread."""
    return caring(count, number=number, topology_spread_constraints=rules, **asks)


def test_pods_are_spread_over_zones() -> None:
    """No zone has two more than another."""
    found = decide(zoned("a", "b", gangs=[spreading(4, spread())]))
    assert Counter(nodes_of(found)) == {"n0": 2, "n1": 2}
    assert found.statistics.engine == DIRECT


def test_pods_that_run_count_and_those_that_go_do_not() -> None:
    """Two run in one zone: the other gets the next two."""
    there = [running("n0", name=f"r{i}") for i in range(2)]
    found = decide(zoned("a", "b", gangs=[spreading(2, spread())], running=there))
    assert nodes_of(found) == ["n1", "n1"]


def test_more_than_there_is_even_room_for_is_no() -> None:
    """The emptiest zone is full, so the others must stop."""
    found = decide(zoned("a", "b", "b", gangs=[spreading(10, spread())]))
    (reason,) = found.gangs[0].reasons
    assert reason.rule is Rule.POD_SPREAD


def test_over_many_nodes_it_is_counted() -> None:
    """Some node stays empty, so every other may have as many as the skew."""
    nodes = ["a"] * 6
    asks = spread(HOST, skew=2)
    found = decide(zoned(*nodes, gangs=[spreading(4, asks)]))
    assert max(Counter(nodes_of(found)).values()) == 2
    assert found.statistics.engine == PATTERN
    there = [running("n0", name=f"r{i}") for i in range(2)]
    found = decide(zoned(*nodes, gangs=[spreading(4, asks)], running=there))
    assert "n0" not in nodes_of(found)


def test_too_few_domains_count_as_if_one_were_empty() -> None:
    """`minDomains`: each has at most the skew; the pin counts node by node as well."""
    asks = spread(min_domains=3)
    found = decide(zoned("a", "b", gangs=[spreading(2, asks)]))
    assert Counter(nodes_of(found)) == {"n0": 1, "n1": 1}
    assert rule_of(decide(zoned("a", "b", gangs=[spreading(3, asks)]))) is not None
    asks = spread(min_domains=2)
    found = decide(zoned("a", "b", gangs=[spreading(4, asks)]))
    assert found.gangs[0].reasons  # kube-scheduler counts from nothing on a node
    found = decide(zoned("a", "a", "b", "b", gangs=[spreading(4, asks)]))
    assert set(Counter(nodes_of(found)).values()) == {1}


def test_nodes_that_the_pod_does_not_ask_for_do_not_count() -> None:
    """Unless the policy says so."""
    asks: dict[str, Any] = {"node_selector": {"topology.kubernetes.io/zone": "a"}}
    found = decide(zoned("a", "b", gangs=[spreading(3, spread(), **asks)]))
    assert nodes_of(found) == ["n0"] * 3
    every = spread(node_affinity_policy="Ignore")
    assert rule_of(decide(zoned("a", "b", gangs=[spreading(3, every, **asks)])))


def test_nodes_without_the_label_are_not_for_them() -> None:
    """Of none of the rules."""
    found = decide(zoned("", "b", gangs=[spreading(2, spread())]))
    assert nodes_of(found) == ["n1", "n1"]


def test_pods_that_the_rule_does_not_mean_go_where_few_are() -> None:
    """They use nothing up, and are kept from full domains."""
    there = [running("n0", name=f"r{i}", app="y") for i in range(2)]
    asks = spread(app="y")
    found = decide(zoned("a", "b", gangs=[spreading(3, asks)], running=there))
    assert nodes_of(found) == ["n1"] * 3
    assert found.statistics.engine == PATTERN
    asks = spread(HOST, app="y")
    found = decide(zoned("a", "b", gangs=[spreading(3, asks)], running=there))
    assert nodes_of(found) == ["n1"] * 3


def test_others_that_are_meant_count_and_are_free() -> None:
    """Who has no rule goes anywhere, and is counted by who has one."""
    bound = member(
        name="free", labels={"app": "x"}, count=2, node_selector={HOST: "n0"}
    )
    even = member(
        name="even",
        labels={"app": "x"},
        count=2,
        topology_spread_constraints=(spread(),),
    )
    found = decide(zoned("a", "b", gangs=[gang(bound, even)]))
    on = nodes_of(found)
    assert on[:2] == ["n0", "n0"]
    assert on[2:] == ["n1", "n1"]


def test_rules_that_could_wait_for_each_other_are_refused_by_name() -> None:
    """Where every node counts in spite of the pin, one rule alone is sure to end."""
    every = spread(node_affinity_policy="Ignore")
    assert nodes_of(decide(zoned("a", "b", gangs=[spreading(2, every)])))
    for asks in (
        spreading(2, every, spread(HOST)),
        spreading(2, every, affinity=near(term())),
    ):
        (reason,) = decide(zoned("a", "b", gangs=[asks])).gangs[0].reasons
        assert (reason.rule, reason.field) == (
            Rule.NOT_MODELLED,
            "spec.members[].node.topologySpreadConstraints",
        )


def test_each_of_the_pods_that_share_a_claim_counts() -> None:
    """They are one place of a member; three in one zone let three into the other."""
    uid = "00000000-0000-4000-8000-000000000002"
    trio = member(labels={"app": "x"}, resources={"pods": 3})
    gangs = [spreading(4, spread()), gang(trio, name="trio", uid=uid)]
    found = decide(zoned("a", "b", gangs=gangs))
    assert len(set(nodes_of(found))) == 1
    assert set(nodes_of(found)).isdisjoint(nodes_of(found, 1))
