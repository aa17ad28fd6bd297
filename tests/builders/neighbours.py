"""Pods that care about each other: terms, rules of spread, and small clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.labels import LabelSelector
from contracts.pod_terms import TopologySpreadConstraint
from contracts.pods.node_affinity import REQUIRED
from contracts.workload import Container, ContainerPort, Node, Pod
from solver.allocate import allocate
from solver.decision import Decision
from solver.snapshot.snapshot import Snapshot
from tests.builders.devices import devices, pool
from tests.builders.gangs import gang, member, node, pod
from tests.builders.problems import observe_core, problem_of, snapshot_of

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def term(key: str = HOST, *, app: str = "x", **more: Any) -> dict[str, Any]:
    """Make a term that means pods with the label `app`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def apart(*terms: Mapping[str, Any]) -> dict[str, Any]:
    """Require that no pod of these terms is near."""
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def near(*terms: Mapping[str, Any]) -> dict[str, Any]:
    """Require that a pod of these terms is near."""
    return {"podAffinity": {REQUIRED: list(terms)}}


def spread(
    key: str = ZONE, *, skew: int = 1, app: str = "x", **more: Any
) -> TopologySpreadConstraint:
    """Make a rule of spread over pods with the label `app`."""
    return TopologySpreadConstraint(
        max_skew=skew,
        topology_key=key,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": app}),
        **more,
    )


def caring(
    count: int = 1,
    *,
    app: str = "x",
    number: int = 1,
    name: str = "worker",
    **asks: Any,
) -> Gang:
    """Make a gang of equal pods with the label `app`, each with one device."""
    uid = f"00000000-0000-4000-8000-{number:012}"
    pods = member(name=name, count=count, labels={"app": app}, **asks)
    return gang(pods, name=f"g{number}", uid=uid)


def zoned(
    *zones: str, gangs: Iterable[Gang] = (), running: Iterable[Pod] = (), size: int = 4
) -> Snapshot:
    """Make nodes `n0`, `n1`, ... in these zones, each with some devices."""
    nodes: list[Node] = [
        node(f"n{number}", labels={ZONE: zone} if zone else {})
        for number, zone in enumerate(zones)
    ]
    pools = {str(n.name): (pool(*devices(size), name=str(n.name)),) for n in nodes}
    return observe_core(snapshot_of(pools, gangs), *nodes, *running)


def running(node: str, *, app: str = "x", name: str = "r", **more: Any) -> Pod:
    """Make a pod that runs on a node."""
    return pod(name, labels={"app": app}, node_name=node, phase="Running", **more)


def with_port(item: Pod, port: int, ip: str = "") -> Pod:
    """Give a pod a port of its node."""
    ports = (ContainerPort(host_port=port, host_ip=ip),)
    return replace(
        item, spec=replace(item.spec, containers=(Container(name="c", ports=ports),))
    )


def decide(snapshot: Snapshot) -> Decision:
    """Decide everything that waits."""
    return allocate(problem_of(snapshot))


def nodes_of(decision: Decision, gang: int = 0) -> list[str]:
    """List the nodes of a gang's pods."""
    return [str(pod.node) for pod in decision.gangs[gang].members]


def rule_of(decision: Decision, gang: int = 0) -> Rule | None:
    """Name the rule of a gang that is not in."""
    reasons = decision.gangs[gang].reasons
    return reasons[0].rule if reasons else None
