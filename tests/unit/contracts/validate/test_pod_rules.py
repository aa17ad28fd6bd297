"""What the API server refuses in a pod's words about others: ports, terms, spread."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.pods.node_affinity import REQUIRED
from contracts.shapes import read
from contracts.validate.pods import check_pod_spec
from contracts.workload import PodSpec

AFFINITY = "podAntiAffinity"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def violations(**spec: Any) -> list[str]:
    """Read a pod's spec, and say what is wrong with it."""
    return [str(found) for found in check_pod_spec(read(spec, PodSpec, "pod", []))]


def of_term(term: Any) -> list[str]:
    """Check a term, and say what is wrong after its own path."""
    found = violations(affinity={AFFINITY: {REQUIRED: [term]}})
    return [
        text.removeprefix(f"spec.affinity.{AFFINITY}.{REQUIRED}[0]") for text in found
    ]


def of_spread(*constraints: Any) -> list[str]:
    """Check constraints, and say what is wrong after their path."""
    found = violations(topologySpreadConstraints=list(constraints))
    return [text.removeprefix("spec.topologySpreadConstraints") for text in found]


@pytest.mark.parametrize(
    ("port", "is_refused"), [(0, 0), (1, 0), (65535, 0), (99999, 1)]
)
def test_host_ports_are_ports(port: int, is_refused: int) -> None:
    found = violations(containers=[{"ports": [{"hostPort": port}]}])
    text = "must be between 1 and 65535, inclusive"
    path = "spec.containers[0].ports[0].hostPort"
    assert found == [f"{path}: Invalid value: {port}: {text}"] * is_refused


def test_a_protocol_is_one_of_three() -> None:
    port = {"hostPort": 80, "protocol": "HTTP"}
    (text,) = violations(containers=[{"ports": [port]}])
    assert text.startswith("spec.containers[0].ports[0].protocol: Unsupported value")


def test_what_is_not_known_of_an_affinity_is_refused() -> None:
    later = "requiredDuringSchedulingRequiredDuringExecution"
    (text,) = violations(affinity={AFFINITY: {later: []}})
    assert text == f"spec.affinity.{AFFINITY}.{later}: unknown field"
    for value in (7, [7]):
        assert len(violations(affinity={AFFINITY: value})) == 1
    assert len(violations(affinity={AFFINITY: {REQUIRED: {}}})) == 1


def test_a_term_that_the_api_server_takes() -> None:
    selector = {
        "matchLabels": {"example.com/app": "a"},
        "matchExpressions": [{"key": "b", "operator": "Exists"}],
    }
    assert of_term({"topologyKey": "a.b/zone", "labelSelector": selector}) == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"topologyKey": ""}, ".topologyKey: Required value: can not be empty"),
        ({"topologyKey": "a\nb"}, ".topologyKey: Invalid value"),
        ({"colour": 1}, ".colour: unknown field"),
        ({"namespaces": ["A"]}, ".namespace: Invalid value"),
        ({"labelSelector": {"matchLabls": {}}}, ".labelSelector.matchLabls: unknown"),
        (
            {"labelSelector": {"matchLabels": {"": "a"}}},
            ".labelSelector.matchLabels: Invalid value",
        ),
        (
            {"namespaceSelector": {"matchLabels": {"a": "b c"}}},
            ".namespaceSelector.matchLabels: Invalid value",
        ),
        ({"topologyKey": 7}, ".topologyKey: Invalid value: Expected `str`"),
    ],
)
def test_terms_are_refused_by_field(more: Any, text: str) -> None:
    (found,) = of_term({"topologyKey": "zone", **more})
    assert found.startswith(text)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"key": "a", "operator": "In"}, "values: Required value"),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "values: Forbidden"),
        ({"key": "a", "operator": "Gt", "values": ["1"]}, "operator: Invalid value"),
        ({"key": "", "operator": "Exists"}, "key: Invalid value"),
        ({"key": "a", "operator": "In", "values": ["b c"]}, "values[0]: Invalid value"),
    ],
)
def test_comparisons_are_refused_by_field(said: Any, text: str) -> None:
    selector = {"matchExpressions": [said]}
    (found,) = of_spread({**SPREAD, "labelSelector": selector})
    assert found.startswith(f"[0].labelSelector.matchExpressions[0].{text}")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"maxSkew": 0}, "maxSkew: Invalid value: 0: must be greater than zero"),
        ({"topologyKey": ""}, "topologyKey: Required value: can not be empty"),
        (
            {"whenUnsatisfiable": "Never"},
            (
                'whenUnsatisfiable: Unsupported value: "Never": supported values: '
                '"DoNotSchedule", "ScheduleAnyway"'
            ),
        ),
        ({"minDomains": 0}, "minDomains: Invalid value: 0: must be greater than zero"),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            (
                "minDomains: Invalid value: 2: can only use minDomains if "
                "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            ),
        ),
        (
            {"nodeTaintsPolicy": "Some"},
            (
                'nodeTaintsPolicy: Unsupported value: "Some": supported values: '
                '"Honor", "Ignore"'
            ),
        ),
    ],
)
def test_constraints_are_refused_by_field(more: Any, text: str) -> None:
    assert of_spread({**SPREAD, **more}) == [f"[0].{text}"]


def test_constraints_of_one_kind_are_refused() -> None:
    other = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}
    assert of_spread(SPREAD, other) == []
    field = "[0].{topologyKey, whenUnsatisfiable}"
    text = "{zone, DoNotSchedule}"
    assert of_spread(SPREAD, SPREAD) == [f'{field}: Duplicate value: "{text}"']
