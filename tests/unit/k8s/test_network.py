"""The NetworkPolicies of k8s: who reaches whom, and that nobody else does."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml

from contracts.names import BUS_CLIENT
from tests.lab.manifests import K8S, TOKENS, Manifest, base, workloads

SYSTEM = "moorings-system"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
CLIENT = {BUS_CLIENT: "true"}
NATS_PORTS = ("client", "cluster", "monitor")
SERVICES = ("authcallout", "nodeagent", "publisher", "solver")
COMPONENTS = (K8S / "components/metrics-ingress", K8S / "components/traces")
"""Those that have policies."""


class _Pod(NamedTuple):
    """What policies know a pod by."""

    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str] = {}

    @property
    def all_namespace_labels(self) -> dict[str, str]:
        """Return the labels of its namespace, with the one that Kubernetes sets."""
        return {NAMESPACE_NAME: self.namespace, **self.namespace_labels}


def _service(name: str) -> _Pod:
    return _Pod(SYSTEM, {"app.kubernetes.io/name": name})


NATS = _service("nats")
DNS = _Pod("kube-system", {})
OUTSIDE = _Pod("elsewhere", {})
PROMETHEUS = _Pod("monitoring", {"app.kubernetes.io/name": "prometheus"})
COLLECTOR = _Pod("observability", {})


@cache
def _policies() -> list[Manifest]:
    """Return those of k8s/base and of every component."""
    added = [
        yaml.safe_load(path.read_text())
        for folder in COMPONENTS
        for path in sorted(folder.glob("*-networkpolicy.yaml"))
    ]
    return [thing for thing in base() if thing["kind"] == "NetworkPolicy"] + added


def _selects(selector: Manifest, labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {}).items()
    expressions = selector.get("matchExpressions", ())
    assert all(each["operator"] == "In" for each in expressions)
    return wanted <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )


def _is_peer(peer: Manifest, pod: _Pod) -> bool:
    """True if a rule's peer is this pod; without a namespaceSelector: one of ours."""
    assert peer.keys() <= {"namespaceSelector", "podSelector"}
    if "namespaceSelector" in peer:
        here = _selects(peer["namespaceSelector"], pod.all_namespace_labels)
    else:
        here = pod.namespace == SYSTEM
    return here and _selects(peer.get("podSelector", {}), pod.labels)


def _admits(direction: str, pod: _Pod, other: _Pod, port: str | int) -> bool:
    """True if the policies of `pod` let it speak with `other` at a port (TCP)."""
    if pod.namespace != SYSTEM:
        return True  # policies elsewhere are not ours
    ends = "from" if direction == "Ingress" else "to"
    about = [
        policy["spec"]
        for policy in _policies()
        if _selects(policy["spec"]["podSelector"], pod.labels)
        and direction in policy["spec"]["policyTypes"]
    ]
    assert about  # default-deny is about every pod
    rules: list[dict[str, Any]] = [
        rule for spec in about for rule in spec.get(direction.lower(), ())
    ]
    return any(
        (ends not in rule or any(_is_peer(peer, other) for peer in rule[ends]))
        and {"protocol": "TCP", "port": port} in rule["ports"]
        for rule in rules
    )


def _reaches(pod: _Pod, other: _Pod, port: str | int) -> bool:
    return _admits("Egress", pod, other, port) and _admits("Ingress", other, pod, port)


def test_components_with_policies_are_known() -> None:
    """This file reads them all."""
    found = (K8S / "components").glob("*/*-networkpolicy.yaml")
    assert {path.parent for path in found} == set(COMPONENTS)


@pytest.mark.parametrize(
    "pod",
    [
        OUTSIDE,
        PROMETHEUS,
        NATS,
        *map(_service, SERVICES),
        _Pod("platform", CLIENT, CLIENT),
    ],
)
def test_no_pod_reaches_the_monitor_of_nats(pod: _Pod) -> None:
    """It asks for no login; kubelet's probes come from the node."""
    (container,) = workloads()["nats"]["spec"]["template"]["spec"]["containers"]
    ports = [port["name"] for port in container["ports"]]
    service = next(
        thing
        for thing in base()
        if thing["kind"] == "Service" and thing["metadata"]["name"] == "nats"
    )

    assert ports == [*NATS_PORTS]
    assert not _reaches(pod, NATS, "monitor")
    assert not _reaches(pod, NATS, 8222)
    assert "monitor" not in {port["name"] for port in service["spec"]["ports"]}


@pytest.mark.parametrize(
    ("labels", "namespace_labels", "admitted"),
    [
        (CLIENT, CLIENT, True),
        (CLIENT, {}, False),  # anybody may label a pod
        ({}, CLIENT, False),
        ({}, {}, False),
        (CLIENT, {BUS_CLIENT: "false"}, False),
    ],
)
def test_clients_reach_the_bus_where_an_admin_says_so(
    labels: dict[str, str], namespace_labels: dict[str, str], admitted: bool
) -> None:
    """Only who may write namespaces opens the bus to the pods of one."""
    pod = _Pod("platform", labels, namespace_labels)

    assert _reaches(pod, NATS, "client") is admitted
    assert not _reaches(pod, NATS, "cluster")
    assert not _reaches(pod, _service("solver"), "health")


@pytest.mark.parametrize("name", SERVICES)
def test_services_reach_the_bus_and_names(name: str) -> None:
    pod = _service(name)

    assert _reaches(pod, NATS, "client")
    assert not _reaches(pod, NATS, "cluster")
    assert _reaches(pod, DNS, 53)
    assert not _reaches(pod, OUTSIDE, 53)
    assert not _reaches(pod, OUTSIDE, 80)
    others = [other for other in SERVICES if other != name]
    assert not any(_reaches(pod, _service(other), "health") for other in others)


def test_only_who_has_rights_reaches_the_api_server() -> None:
    """Those with a token of a service account; nats and solver stay inside."""
    tokens = {
        name: workload["spec"]["template"]["spec"]["automountServiceAccountToken"]
        for name, workload in workloads().items()
    }
    callout = yaml.safe_load((TOKENS / "authcallout-deployment.yaml").read_text())
    pod = callout["spec"]["template"]["spec"]
    tokens["authcallout"] = pod["automountServiceAccountToken"]
    reaching = {
        name: {port: _reaches(_service(name), OUTSIDE, port) for port in (443, 6443)}
        for name in tokens
    }

    assert reaching == {name: {443: has, 6443: has} for name, has in tokens.items()}
    assert sorted(name for name, has in tokens.items() if not has) == ["nats", "solver"]


def test_nats_speaks_with_itself_alone() -> None:
    assert _reaches(NATS, NATS, "cluster")
    assert _reaches(NATS, DNS, 53)
    assert not _reaches(NATS, NATS, "client")
    assert not any(_reaches(NATS, OUTSIDE, port) for port in (53, 80, 443, 6443))


def test_prometheus_and_collector_are_reached_where_asked_for() -> None:
    scraped = {
        name for name in SERVICES if _reaches(PROMETHEUS, _service(name), "health")
    }
    traced = {name for name in SERVICES if _reaches(_service(name), COLLECTOR, 4318)}

    assert scraped == set(SERVICES)
    assert traced == {"publisher", "solver"}
    assert not any(_reaches(OUTSIDE, _service(name), "health") for name in SERVICES)
