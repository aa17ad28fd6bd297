"""Tiny worlds of pods that care about each other, by seed.

Two or three nodes in one or two zones, pods that run, and gangs that ask for a device
or two, with a few labels and rules of every sort, so that most rules mean somebody.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec.structs import replace

from contracts.gang import Gang, Member
from contracts.labels import LabelSelector, LabelSelectorRequirement
from contracts.pod_terms import HostPort, TopologySpreadConstraint
from contracts.pods.node_affinity import REQUIRED
from contracts.workload import Container, ContainerPort, Node, Pod
from solver.problem.problem import Problem
from tests.builders import devices, gang, member, node, pod, pool
from tests.builders.problems import observe_core, problem_of, snapshot_of

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
UID = "00000000-0000-4000-8000-{:012}"
_ADDRESSES = ("", "", "10.0.0.1", "10.0.0.2")


def neighbourhood(seed: int) -> Problem:
    """Draw a world and ask for everything that waits in it."""
    draw = random.Random(seed)  # drawn by seed
    nodes = [_node(number, draw) for number in range(draw.choice((2, 2, 3)))]
    pools = {
        str(item.name): (pool(*devices(draw.choice((1, 2))), name=item.name),)
        for item in nodes
    }
    gangs = [_gang(number, draw) for number in range(draw.choice((1, 1, 2, 2, 3)))]
    running = [
        draw_running(number, draw, [item.name for item in nodes])
        for number in range(draw.choice((0, 0, 1, 2, 3)))
    ]
    snapshot = observe_core(snapshot_of(pools, gangs), *nodes, *running)
    return problem_of(snapshot)


def _node(number: int, draw: random.Random) -> Node:
    labels = {ZONE: draw.choice(("a", "a", "b"))}
    if draw.random() < 0.08:
        labels = {}
    if draw.random() < 0.05:
        labels[HOST] = "same"
    return node(f"n{number}", labels=labels, ready=draw.random() > 0.05)


def draw_labels(draw: random.Random) -> dict[str, str]:
    """Draw the labels of a pod."""
    labels = {"app": draw.choice(("x", "x", "y"))}
    if draw.random() < 0.3:
        labels["role"] = draw.choice(("one", "two"))
    return labels


def _selector(draw: random.Random) -> LabelSelector | None:
    dice = draw.random()
    if dice < 0.7:
        return LabelSelector(match_labels={"app": draw.choice(("x", "x", "y"))})
    if dice < 0.75:
        return None
    if dice < 0.8:
        return LabelSelector()
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    values = ("one",) if operator in ("In", "NotIn") else ()
    said = LabelSelectorRequirement(key="role", operator=operator, values=values)
    return LabelSelector(match_expressions=(said,))


def _term(draw: random.Random) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": draw.choice((HOST, ZONE))}
    selector = _selector(draw)
    if selector is not None:
        term["labelSelector"] = {
            "matchLabels": selector.match_labels,
            "matchExpressions": [
                {"key": r.key, "operator": r.operator, "values": list(r.values)}
                for r in selector.match_expressions
            ],
        }
    dice = draw.random()
    if dice < 0.1:
        term["namespaces"] = ["other"]
    elif dice < 0.2:
        term["namespaceSelector"] = {}
    elif dice < 0.3:
        term["matchLabelKeys"] = ["role"]
    elif dice < 0.35:
        term["mismatchLabelKeys"] = ["role"]
    return term


def draw_terms(draw: random.Random, part: str, chance: float) -> dict[str, Any]:
    """Draw what a pod must be near to, or apart from, if anything."""
    if draw.random() >= chance:
        return {}
    terms = [_term(draw) for _ in range(draw.choice((1, 1, 1, 2)))]
    return {part: {REQUIRED: terms}}


def draw_spread(draw: random.Random) -> TopologySpreadConstraint:
    """Draw how evenly pods must be spread."""
    return TopologySpreadConstraint(
        max_skew=draw.choice((1, 1, 2)),
        topology_key=draw.choice((HOST, ZONE)),
        when_unsatisfiable="DoNotSchedule",
        label_selector=_selector(draw),
        min_domains=draw.choice((None, None, None, 2, 3)),
        node_affinity_policy=draw.choice(
            (None, None, None, "Honor", "Honor", "Ignore")
        ),
        node_taints_policy=draw.choice((None, None, "Honor")),
    )


def _member(number: int, draw: random.Random) -> Member:
    sort = draw.random()
    ports: tuple[HostPort, ...] = ()
    if draw.random() < 0.15:
        ip = draw.choice(_ADDRESSES)
        protocol = draw.choice(("TCP", "TCP", "UDP"))
        ports = (HostPort(port=80, protocol=protocol, ip=ip or HostPort(port=80).ip),)
    spread: tuple[TopologySpreadConstraint, ...] = ()
    if draw.random() < 0.25:
        spread = tuple(draw_spread(draw) for _ in range(draw.choice((1, 1, 2))))
    selector = {ZONE: "a"} if draw.random() < 0.08 else {}
    return member(
        name=f"m{number}",
        count=draw.choice((1, 1, 2, 2, 3)) if draw.random() < 0.6 else 1,
        labels=draw_labels(draw),
        node_selector=selector,
        affinity={
            **draw_terms(draw, "podAffinity", 0.5 if sort < 0.5 else 0.1),
            **draw_terms(draw, "podAntiAffinity", 0.5 if sort >= 0.5 else 0.1),
        },
        host_ports=ports,
        topology_spread_constraints=spread,
    )


def _gang(number: int, draw: random.Random) -> Gang:
    members = [_member(index, draw) for index in range(draw.choice((1, 1, 2)))]
    if draw.random() < 0.2:
        fewest = [draw.randint(0, each.count) for each in members]
        fewest[0] = max(fewest[0], 1)
        pairs = zip(members, fewest, strict=True)
        members = [replace(each, min_count=few) for each, few in pairs]
    namespace = "other" if draw.random() < 0.1 else "default"
    return gang(
        *members,
        name=f"g{number}",
        namespace=namespace,
        uid=UID.format(number),
        priority=draw.choice((0, 0, 5)),
    )


def draw_running(number: int, draw: random.Random, nodes: list[str]) -> Pod:
    """Draw a pod that runs on one of these nodes."""
    container = Container(name="main")
    if draw.random() < 0.2:
        port = ContainerPort(
            host_port=80, host_ip=draw.choice(_ADDRESSES), protocol="TCP"
        )
        container = Container(name="main", ports=(port,))
    made = pod(
        f"r{number}",
        namespace=draw.choice(("default", "default", "default", "other")),
        labels=draw_labels(draw),
        node_name=draw.choice(nodes),
        affinity=draw_terms(draw, "podAntiAffinity", 0.25),
        phase="Running",
    )
    return _with_container(made, container, is_going=draw.random() < 0.1)


def _with_container(made: Pod, container: Container, *, is_going: bool) -> Pod:
    stamp = "2026-11-20T12:00:00Z" if is_going else None
    metadata = replace(made.metadata, deletion_timestamp=stamp)
    spec = replace(made.spec, containers=(container,))
    return replace(made, metadata=metadata, spec=spec)
