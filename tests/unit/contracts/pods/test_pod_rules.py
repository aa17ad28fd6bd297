"""What pods ask of other pods is read as kube-scheduler reads it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.labels import LabelSelectorRequirement
from contracts.pod_terms import HostPort
from contracts.pods.node_affinity import REQUIRED
from contracts.pods.pod_rules import (
    clash,
    list_host_ports,
    list_mentioned_labels,
    list_unknown_namespaces,
    means,
    means_namespace,
    read_pod_rules,
    selects,
)
from contracts.workload import Container, ContainerPort, PodSpec
from tests.builders.neighbours import apart, near, spread, term


def only(affinity: dict[str, Any], **labels: str) -> Any:
    """Read the one term of an affinity."""
    rules = read_pod_rules("default", labels, affinity)
    (found,) = (*rules.near, *rules.apart)
    return found


def test_ports_are_those_of_containers_and_sidecars() -> None:
    """Init containers that end take none; with hostNetwork every port is one."""
    named = ContainerPort(host_port=80, container_port=8080)
    other = ContainerPort(host_port=81, protocol="UDP", host_ip="10.0.0.1")
    internal = ContainerPort(container_port=9)
    spec = PodSpec(
        containers=(Container(name="a", ports=(named, internal)),),
        init_containers=(
            Container(name="b", ports=(other,), restart_policy="Always"),
            Container(name="c", ports=(ContainerPort(host_port=82),)),
        ),
    )
    ports = (HostPort(port=80), HostPort(port=81, protocol="UDP", ip="10.0.0.1"))
    assert list_host_ports(spec) == ports
    shared = PodSpec(containers=spec.containers, host_network=True)
    assert list_host_ports(shared) == (HostPort(port=9), HostPort(port=80))


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (HostPort(port=80), HostPort(port=80), True),
        (HostPort(port=80), HostPort(port=81), False),
        (HostPort(port=80), HostPort(port=80, protocol="UDP"), False),
        (HostPort(port=80), HostPort(port=80, ip="10.0.0.1"), True),
        (HostPort(port=80, ip="10.0.0.2"), HostPort(port=80, ip="10.0.0.1"), False),
    ],
)
def test_ports_clash_on_one_address_or_on_all(
    one: HostPort, two: HostPort, expected: bool
) -> None:
    """As NodePorts has it."""
    assert clash(one, two) is clash(two, one) is expected


def test_a_term_means_pods_of_its_own_namespace_unless_it_says_others() -> None:
    """An empty selector of namespaces means all, one by name that one."""
    assert means(only(apart(term())), "default", {"app": "x"}) is True
    assert means(only(apart(term())), "other", {"app": "x"}) is False
    assert means(only(apart(term())), "default", {"app": "y"}) is False
    listed = only(apart(term(namespaces=["other"])))
    assert [means_namespace(listed, name) for name in ("default", "other")] == [
        False,
        True,
    ]
    everywhere = only(apart(term(namespaceSelector={})))
    assert means_namespace(everywhere, "anywhere") is True
    name = {"matchLabels": {"kubernetes.io/metadata.name": "other"}}
    by_name = only(apart(term(namespaceSelector=name)))
    assert [means_namespace(by_name, each) for each in ("default", "other")] == [
        False,
        True,
    ]
    by_label = near(term(namespaceSelector={"matchLabels": {"team": "a"}}))
    assert means_namespace(only(by_label), "default") is None
    place = f"affinity.podAffinity.{REQUIRED}[0]"
    assert list_unknown_namespaces(by_label) == (place,)
    assert list_unknown_namespaces(near(term(namespaceSelector=name))) == ()


def test_keys_of_labels_are_taken_from_the_pod() -> None:
    """Where it has them: matched, or not to be matched; for spread likewise."""
    keyed = term(matchLabelKeys=["job", "none"], mismatchLabelKeys=["run"])
    found = only(apart(keyed), job="1", run="2")
    assert means(found, "default", {"app": "x", "job": "1"}) is True
    assert means(found, "default", {"app": "x", "job": "2"}) is False
    assert means(found, "default", {"app": "x", "job": "1", "run": "2"}) is False
    rules = read_pod_rules(
        "default", {"job": "1"}, {}, spread=(spread(match_label_keys=("job",)),)
    )
    assert selects(rules.spread[0].selector, {"app": "x", "job": "2"}) is False
    assert list_mentioned_labels(rules) == {"app", "job"}


def test_no_selector_means_nobody_and_an_empty_one_everybody() -> None:
    """As labels.Selector has it."""
    nobody = only(apart({"topologyKey": "zone"}))
    everybody = only(apart({"topologyKey": "zone", "labelSelector": {}}))
    assert not means(nobody, "default", {"app": "x"})
    assert means(everybody, "default", {})


def test_what_is_unknown_decides_only_where_nothing_else_does() -> None:
    """A label that cannot match answers whatever the others may be."""
    first = LabelSelectorRequirement(key="a", operator="Exists")
    second = LabelSelectorRequirement(key="b", operator="Exists")
    assert selects((first, second), {}, ["b"]) is False
    assert selects((first, second), {"a": ""}, ["b"]) is None


@pytest.mark.parametrize(
    ("affinity", "field"),
    [
        (near({}), "[0].topologyKey"),
        (near(term(color="red")), "[0].color"),
        (near(term(namespaces="default")), "[0].namespaces"),
        ({"podAffinity": {REQUIRED: {}}}, REQUIRED),
        (
            near(
                term(
                    labelSelector={"matchExpressions": [{"key": "a", "operator": "?"}]}
                )
            ),
            "[0].labelSelector.matchExpressions[0].operator",
        ),
        (
            near(
                term(
                    labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}
                )
            ),
            "[0].labelSelector.matchExpressions[0].values",
        ),
    ],
)
def test_what_is_malformed_is_named(affinity: dict[str, Any], field: str) -> None:
    """By its path in the affinity."""
    with pytest.raises(DecodeError) as raised:
        read_pod_rules("default", {}, affinity)
    assert raised.value.field.endswith(field)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"skew": 0}, "maxSkew"),
        ({"skew": 2**31}, "maxSkew"),
        ({"min_domains": 2**31}, "minDomains"),
        ({"min_domains": 0}, "minDomains"),
        ({"node_taints_policy": "Maybe"}, "nodeTaintsPolicy"),
        ({"key": ""}, "topologyKey"),
    ],
)
def test_a_malformed_spread_is_named(more: dict[str, Any], field: str) -> None:
    """By its number and field."""
    with pytest.raises(DecodeError) as raised:
        read_pod_rules("default", {}, {}, spread=(spread(**more),))
    assert raised.value.field == f"topologySpreadConstraints[0].{field}"


def test_a_rule_that_is_not_known_is_refused() -> None:
    later = "requiredDuringSchedulingRequiredDuringExecution"
    for part in ("podAffinity", "podAntiAffinity"):
        with pytest.raises(DecodeError, match=f"affinity.{part}.{later}"):
            read_pod_rules("default", {}, {part: {later: []}})
    preferred: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    assert read_pod_rules("default", {}, {"podAffinity": preferred}).near == ()
