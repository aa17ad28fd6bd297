"""Of the pods that run those are recorded that matter, with what matters of them."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from contracts.gang import Gang
from contracts.labels import LabelSelector, LabelSelectorRequirement
from contracts.pod_terms import HostPort
from contracts.workload import Container, ContainerPort, Pod
from solver.problem.problem import NeighbourPart
from tests.builders import pod
from tests.builders.neighbours import ZONE, apart, caring, near, spread, term, zoned
from tests.builders.problems import problem_of


def running(name: str, node: str = "n0", **more: Any) -> Pod:
    labels = {"app": "x", "color": "red"} | more.pop("labels", {})
    return pod(name, labels=labels, node_name=node, phase="Running", **more)


def recorded(gang: Gang, *there: Pod) -> tuple[NeighbourPart, ...]:
    return problem_of(zoned("a", "b", gangs=[gang], running=there)).neighbours


def test_only_who_is_meant_is_recorded_with_the_labels_that_are_read() -> None:
    """Equal pods of a node are counted; others are left out."""
    asks = caring(affinity=near(term()))
    there = [
        running("one"),
        running("two", labels={"color": "blue"}),
        running("three", "n1"),
        running("other", labels={"app": "y"}),
        running("away", namespace="other"),
        running("over", labels={"app": "x"}),
    ]
    found = recorded(asks, *there[:-1])
    assert [(n.node, n.pod.labels, n.pod.count) for n in found] == [
        ("n0", {"app": "x"}, 2),
        ("n1", {"app": "x"}, 1),
    ]
    assert recorded(caring(), *there) == ()


def test_who_keeps_others_away_is_recorded_where_they_are_meant() -> None:
    """Of batches without a rule as well; labels do not matter then."""
    keeper = running("keeper", affinity=apart(term(ZONE)))
    (found,) = recorded(caring(), keeper)
    assert (found.pod.labels, len(found.pod.apart)) == ({}, 1)
    assert recorded(caring(app="y"), keeper) == ()


def test_spread_reads_its_own_namespace_and_who_is_going() -> None:
    """Who is going does not count, and is recorded as that."""
    asks = caring(topology_spread_constraints=(spread(),))
    found = recorded(asks, running("one"), running("away", namespace="other"))
    assert [n.pod.terminating for n in found] == [False]


def test_an_affinity_that_cannot_be_read_keeps_everybody_off_the_node() -> None:
    """Unknown is never a yes."""
    strange = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 1}}
    (found,) = recorded(caring(), running("strange", affinity=strange))
    assert found.pod.apart


def test_ports_are_recorded_where_somebody_wants_them() -> None:
    """Those alone that are wanted."""
    ports = tuple(ContainerPort(host_port=number) for number in (80, 81))
    made = running("one")
    containers = (Container(name="c", ports=ports),)
    holder = replace(made, spec=replace(made.spec, containers=containers))
    (found,) = recorded(caring(host_ports=(HostPort(port=80),)), holder)
    assert found.pod.ports == (HostPort(port=80),)
    assert recorded(caring(), holder) == ()


def test_labels_that_are_read_stay_whatever_a_pod_is_recorded_for() -> None:
    """Without them a term for pods that lack a label would mean this one."""
    lacks = LabelSelectorRequirement(key="app", operator="DoesNotExist")
    selector = to_builtins(LabelSelector(match_expressions=(lacks,)))
    asks = caring(affinity=near(term(labelSelector=selector)))
    keeper = running("keeper", affinity=apart(term(ZONE)))
    (found,) = recorded(asks, keeper)
    assert found.pod.labels == {"app": "x"}
