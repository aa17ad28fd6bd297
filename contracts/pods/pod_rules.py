"""Rules between pods: host ports, affinity, anti-affinity and spread, in one form.

The one reading of it, for pods that wait and pods that run. Defaults are filled in and
keys of labels that a term takes from the pod itself (`matchLabelKeys`) are written out.
Knows no node.

Source: kube-scheduler's NodePorts, InterPodAffinity and PodTopologySpread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from contracts.errors import DecodeError
from contracts.gang import MemberNode
from contracts.labels import LabelSelector, LabelSelectorRequirement, holds
from contracts.pod_terms import (
    HostPort,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from contracts.pods.node_affinity import POD_AFFINITIES, PREFERRED, REQUIRED
from contracts.shapes import read
from contracts.workload import PodSpec

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has: its name."""
EVERY_ADDRESS = HostPort(port=0).ip
MAX_INT32 = 2**31 - 1
"""Largest `maxSkew` and `minDomains` in core/v1."""
_NEAR, _APART = POD_AFFINITIES
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_POLICIES = (None, "Honor", "Ignore")
Requirements = tuple[LabelSelectorRequirement, ...]
"""A selector: all of them hold. Empty: everything is selected."""


class PodTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Pods that another must be near to, or apart from."""

    topology_key: str
    selector: Requirements | None = None
    """None: no pod."""
    namespaces: tuple[str, ...] = ()
    """Sorted."""
    namespace_selector: Requirements | None = None
    """Further namespaces, by their labels; None: no others."""


class SpreadTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How evenly the selected pods of one namespace must be spread."""

    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    selector: Requirements | None = None
    honors_affinity: bool = True
    """True if only nodes that the pod selects and requires count."""
    honors_taints: bool = False
    """True if only nodes whose taints the pod tolerates count."""


class PodRules(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The rules of a pod about other pods."""

    ports: tuple[HostPort, ...] = ()
    """Sorted."""
    near: tuple[PodTerm, ...] = ()
    """There is one pod that all of these select, in each of their domains."""
    apart: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadTerm, ...] = ()


def list_host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """List the ports that a pod takes of its node: of containers and sidecars.

    With `hostNetwork` every container port is one.
    """
    sidecars = (one for one in spec.init_containers if one.restart_policy == "Always")
    ports = set()
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port
            if not number and spec.host_network:
                number = port.container_port
            if number > 0:
                ip = port.host_ip or EVERY_ADDRESS
                ports.add((number, port.protocol or "TCP", ip))
    return tuple(HostPort(port=n, protocol=p, ip=ip) for n, p, ip in sorted(ports))


def read_host_ports(ports: Iterable[HostPort]) -> tuple[HostPort, ...]:
    """Fill in the protocol and the address where they are empty."""
    return tuple(
        HostPort(
            port=port.port, protocol=port.protocol or "TCP", ip=port.ip or EVERY_ADDRESS
        )
        for port in ports
    )


def read_apart(
    namespace: str, labels: Mapping[str, str], affinity: Mapping[str, Any]
) -> tuple[PodTerm, ...]:
    """Read which pods a pod keeps away, whatever else its affinity says.

    Raises:
        DecodeError: a term is not of its shape; the field says which.
    """
    return tuple(_read_terms(_APART, namespace, labels, affinity))


def clash(port: HostPort, other: HostPort) -> bool:
    """True if two pods with these ports cannot be on one node."""
    return (port.port, port.protocol) == (other.port, other.protocol) and (
        port.ip == other.ip or EVERY_ADDRESS in (port.ip, other.ip)
    )


def read_pod_rules(
    namespace: str,
    labels: Mapping[str, str],
    affinity: Mapping[str, Any],
    *,
    ports: Sequence[HostPort] = (),
    spread: Iterable[TopologySpreadConstraint] = (),
) -> PodRules:
    """Read what a pod asks of others.

    Raises:
        DecodeError: a term is not of its shape; the field says which.
    """
    return PodRules(
        ports=tuple(ports),
        near=tuple(_read_terms(_NEAR, namespace, labels, affinity)),
        apart=read_apart(namespace, labels, affinity),
        spread=tuple(
            _read_spread(constraint, labels, f"topologySpreadConstraints[{number}]")
            for number, constraint in enumerate(spread)
            if constraint.when_unsatisfiable != "ScheduleAnyway"
        ),
    )


def rules_of_node(namespace: str, node: MemberNode) -> PodRules:
    """Read what each pod of a member asks of others.

    Raises:
        DecodeError: a term is not of its shape; the field says which.
    """
    return read_pod_rules(
        namespace,
        node.labels,
        node.affinity,
        ports=read_host_ports(node.host_ports),
        spread=node.topology_spread_constraints,
    )


def _read_terms(
    part: str, namespace: str, labels: Mapping[str, str], affinity: Mapping[str, Any]
) -> Iterator[PodTerm]:
    """Read the required terms of one part of an affinity."""
    said = affinity.get(part) or {}
    if not isinstance(said, Mapping):
        raise DecodeError("pod", f"affinity.{part}", "Expected `object`")
    for key in said:
        if key not in (REQUIRED, PREFERRED):
            raise DecodeError("pod", f"affinity.{part}.{key}", "unknown field")
    terms = said.get(REQUIRED)
    if terms is None:
        return
    path = f"affinity.{part}.{REQUIRED}"
    if not isinstance(terms, list | tuple):
        raise DecodeError("pod", path, "Expected `array`")
    for number, raw in enumerate(terms):
        place = f"{path}[{number}]"
        if not isinstance(raw, Mapping):
            raise DecodeError("pod", place, "Expected `object`")
        unknown: list[str] = []
        try:
            term = read(raw, PodAffinityTerm, "pod", unknown)
        except DecodeError as error:
            field = error.field.removeprefix("$")
            raise DecodeError("pod", f"{place}{field}", error.reason) from error
        if unknown:
            raise DecodeError("pod", f"{place}.{unknown[0]}", "unknown field")
        yield _resolve_term(term, namespace, labels, place)


def _resolve_term(
    term: PodAffinityTerm, namespace: str, labels: Mapping[str, str], place: str
) -> PodTerm:
    if not term.topology_key:
        raise DecodeError("pod", f"{place}.topologyKey", "Required value")
    selector = _read_selector(term.label_selector, f"{place}.labelSelector")
    if selector is not None:
        own = [
            *_take_own("In", term.match_label_keys, labels),
            *_take_own("NotIn", term.mismatch_label_keys, labels),
        ]
        selector = _sort_requirements({*selector, *own})
    namespaces = tuple(sorted(set(term.namespaces)))
    if not namespaces and term.namespace_selector is None:
        namespaces = (namespace,)
    return PodTerm(
        topology_key=term.topology_key,
        selector=selector,
        namespaces=namespaces,
        namespace_selector=_read_selector(
            term.namespace_selector, f"{place}.namespaceSelector"
        ),
    )


def _read_spread(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str], place: str
) -> SpreadTerm:
    if not constraint.topology_key:
        raise DecodeError("pod", f"{place}.topologyKey", "Required value")
    least = 1 if constraint.min_domains is None else constraint.min_domains
    for field, number in (("maxSkew", constraint.max_skew), ("minDomains", least)):
        if number < 1:
            raise DecodeError("pod", f"{place}.{field}", "must be greater than zero")
        if number > MAX_INT32:
            raise DecodeError("pod", f"{place}.{field}", f"exceeds {MAX_INT32}")
    for field, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in _POLICIES:
            raise DecodeError("pod", f"{place}.{field}", f"unknown policy {policy!r}")
    selector = _read_selector(constraint.label_selector, f"{place}.labelSelector")
    own = tuple(_take_own("In", constraint.match_label_keys, labels))
    if selector is not None:
        selector = _sort_requirements({*selector, *own})
    return SpreadTerm(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=least,
        selector=selector,
        honors_affinity=constraint.node_affinity_policy != "Ignore",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def _take_own(
    operator: str, keys: Iterable[str], labels: Mapping[str, str]
) -> Iterator[LabelSelectorRequirement]:
    """Ask for the pod's own value of each label that it has."""
    for key in keys:
        if key in labels:
            yield LabelSelectorRequirement(
                key=key, operator=operator, values=(labels[key],)
            )


def _read_selector(selector: LabelSelector | None, place: str) -> Requirements | None:
    if selector is None:
        return None
    requirements = {
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    }
    for number, said in enumerate(selector.match_expressions):
        field = f"{place}.matchExpressions[{number}]"
        if said.operator not in _OPERATORS:
            reason = f"unknown operator {said.operator!r}"
            raise DecodeError("pod", f"{field}.operator", reason)
        if (said.operator in ("In", "NotIn")) != bool(said.values):
            reason = "must be given for In and NotIn, and for nothing else"
            raise DecodeError("pod", f"{field}.values", reason)
        values = tuple(sorted(set(said.values)))
        requirements.add(
            LabelSelectorRequirement(
                key=said.key, operator=said.operator, values=values
            )
        )
    return _sort_requirements(requirements)


def _sort_requirements(
    requirements: Iterable[LabelSelectorRequirement],
) -> Requirements:
    return tuple(sorted(requirements, key=lambda r: (r.key, r.operator, r.values)))


def selects(
    selector: Requirements | None,
    labels: Mapping[str, str],
    varying: Iterable[str] = (),
) -> bool | None:
    """True if a selector matches these labels; None: unknown.

    `varying`: keys of labels whose values are not known.
    """
    if selector is None:
        return False
    answers = [
        None if said.key in varying else holds(said, labels) for said in selector
    ]
    if False in answers:
        return False
    return None if None in answers else True


def means(
    term: PodTerm,
    namespace: str,
    labels: Mapping[str, str],
    varying: Iterable[str] = (),
) -> bool | None:
    """True if a term matches a pod; None: unknown."""
    answers = (
        selects(term.selector, labels, varying),
        means_namespace(term, namespace),
    )
    if False in answers:
        return False
    return None if None in answers else True


def means_namespace(term: PodTerm, namespace: str) -> bool | None:
    """True if a term matches the pods of a namespace; None: its labels decide.

    All that is known of a namespace's labels is its name.
    """
    if namespace in term.namespaces:
        return True
    if term.namespace_selector is None:
        return False
    known = {NAMESPACE_NAME: namespace}
    others = {said.key for said in term.namespace_selector} - {NAMESPACE_NAME}
    return selects(term.namespace_selector, known, others)


def list_unknown_namespaces(affinity: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the required terms whose namespaces only their labels would say.

    Raises:
        DecodeError: the affinity is not of its shape.
    """
    paths = []
    for part in POD_AFFINITIES:
        for number, term in enumerate(_read_terms(part, "", {}, affinity)):
            keys = {said.key for said in term.namespace_selector or ()}
            if keys - {NAMESPACE_NAME}:
                paths.append(f"affinity.{part}.{REQUIRED}[{number}]")
    return tuple(paths)


def list_mentioned_labels(rules: PodRules) -> frozenset[str]:
    """List the keys of the labels that rules select pods by."""
    selectors = [
        *(term.selector for term in (*rules.near, *rules.apart)),
        *(term.selector for term in rules.spread),
    ]
    return frozenset(said.key for selector in selectors for said in selector or ())
