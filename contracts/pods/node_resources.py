"""Resources that pods need of their node, by kube-scheduler's arithmetic.

Stands alone because plans, the snapshot and the publisher all count it, and must agree.
CPU is counted in thousandths, everything else in whole units. Knows no node.

Source: k8s.io/component-helpers/resource, PodRequests; KEP-753 (sidecars), KEP-2837
(resources of the pod), KEP-688 (overhead).
"""

from __future__ import annotations

from collections.abc import Mapping

from contracts.quantity import NANO, Quantity
from contracts.workload import Container, PodSpec

CPU, PODS = "cpu", "pods"
MILLI = NANO // 1000
_LARGEST = 2**63 - 1
"""Kubernetes counts in int64, and stops there."""


def sum_requests(spec: PodSpec) -> dict[str, Quantity]:
    """Add up what a pod requests of its node at once, at most.

    Init containers run one after the other before the rest, sidecars along with all
    that follows; what is said of the pod as a whole wins.
    """
    nano_by_name = _sum_containers(spec)
    of_pod = spec.resources
    for name, amount in of_pod.limits.items():
        if _may_be_of_pods(name):
            nano_by_name.setdefault(name, amount.nano)
    for name, amount in of_pod.requests.items():
        if _may_be_of_pods(name):
            nano_by_name[name] = amount.nano
    _add_amounts(
        nano_by_name, {name: amount.nano for name, amount in spec.overhead.items()}
    )
    return {name: Quantity.of_nano(nano_by_name[name]) for name in sorted(nano_by_name)}


def count_requested(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """Count units of what is requested: rounded up, by name; zero is left out."""
    units = {
        name: min(-(-amount.nano // _unit_of(name)), _LARGEST)
        for name, amount in sorted(amounts.items())
    }
    return {name: count for name, count in units.items() if count}


def count_allocatable(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """Count units of what a node has for pods: rounded down, by name."""
    return {
        name: min(amount.nano // _unit_of(name), _LARGEST)
        for name, amount in sorted(amounts.items())
    }


def _unit_of(name: str) -> int:
    return MILLI if name == CPU else NANO


def _may_be_of_pods(name: str) -> bool:
    return name in (CPU, "memory") or name.startswith("hugepages-")


def _sum_containers(spec: PodSpec) -> dict[str, int]:
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        requests = _requests_of(container)
        if container.restart_policy == "Always":
            _add_amounts(running, requests)
        else:
            for name, amount in requests.items():
                peak[name] = max(peak.get(name, 0), running.get(name, 0) + amount)
    for container in spec.containers:
        _add_amounts(running, _requests_of(container))
    return {
        name: max(running.get(name, 0), peak.get(name, 0))
        for name in running.keys() | peak.keys()
    }


def _requests_of(container: Container) -> dict[str, int]:
    resources = {**container.resources.limits, **container.resources.requests}
    return {name: amount.nano for name, amount in resources.items()}


def _add_amounts(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
