"""Topology spread: what is known beforehand is counted, the rest is a rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

from contracts.allocation import Rule
from contracts.gang import Gang
from solver.engines.choose import DIRECT, PATTERN
from tests.builders import gang, member
from tests.builders.neighbours import (
    HOST,
    caring,
    decide,
    near,
    nodes_of,
    rule_of,
    running,
    spread,
    term,
    zoned,
)


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
