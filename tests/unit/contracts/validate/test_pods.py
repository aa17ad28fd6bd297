"""What the API server refuses in a pod: claims, amounts, ports, terms, spread."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.pods.node_affinity import REQUIRED
from contracts.shapes import read
from contracts.validate.pods import check_pod_spec, is_extended_resource
from contracts.workload import PodSpec

GPU = "example.com/gpu"


def violations(**spec: Any) -> list[str]:
    """Read a pod's spec, and say what is wrong with it."""
    return [str(found) for found in check_pod_spec(read(spec, PodSpec, "pod", []))]


def of_resources(**resources: Any) -> list[str]:
    """Check a container with these resources."""
    return violations(containers=[{"name": "c", "resources": resources}])


@pytest.mark.parametrize("amount", ["3", "3000m", "3Ki", "1e3", "0", "999.9m", "3.0"])
def test_whole_numbers_of_an_extended_resource_are_taken(amount: str) -> None:
    """Rounded up to thousandths, as the API server reads them."""
    assert of_resources(limits={GPU: amount}) == []
    assert of_resources(limits={GPU: amount}, requests={GPU: amount}) == []


@pytest.mark.parametrize("amount", ["0.5", "1500m", "1m", "1n", "2.0001"])
def test_parts_of_an_extended_resource_are_refused(amount: str) -> None:
    (text,) = of_resources(limits={GPU: amount})
    field = f"spec.containers[0].resources.limits[{GPU}]"
    assert text == f'{field}: Invalid value: "{amount}": must be an integer'


def test_parts_of_what_kubernetes_counts_are_taken() -> None:
    amounts = {"cpu": "500m", "memory": "1.5Gi"}
    assert of_resources(requests=amounts) == []
    assert of_resources(limits=amounts) == []


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"requests": {GPU: 1}},
            (
                "limits: Required value: Limit must be set for non overcommitable "
                f"resources: {GPU}"
            ),
        ),
        (
            {"requests": {GPU: 1}, "limits": {GPU: 2}},
            f'requests: Invalid value: "1": must be equal to {GPU} limit of 2',
        ),
        (
            {"requests": {"cpu": 2}, "limits": {"cpu": 1}},
            (
                'requests: Invalid value: "2": must be less than or equal to '
                "cpu limit of 1"
            ),
        ),
        (
            {"requests": {"cpu": -1}},
            'requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"requests": {"hugepages-2Mi": "2Mi"}},
            (
                "limits: Required value: Limit must be set for non overcommitable "
                "resources: hugepages-2Mi"
            ),
        ),
    ],
)
def test_requests_and_limits_must_agree(resources: Any, text: str) -> None:
    assert of_resources(**resources) == [f"spec.containers[0].resources.{text}"]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ({}, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        (
            {"resourceClaimName": "c", "resourceClaimTemplateName": "t"},
            (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` "
                "may be specified"
            ),
        ),
    ],
)
def test_a_claim_is_by_name_or_by_template(claim: Any, text: str) -> None:
    found = violations(resourceClaims=[{"name": "gpu", **claim}])
    assert found == [f'spec.resourceClaims[0]: Invalid value: "gpu": {text}']


def test_claims_have_different_names_that_are_labels() -> None:
    one = {"name": "gpu", "resourceClaimName": "c"}
    (text,) = violations(resourceClaims=[one, one])
    assert text == 'spec.resourceClaims[1]: Duplicate value: "gpu"'
    for name in ("", "GPU"):
        (text,) = violations(resourceClaims=[{**one, "name": name}])
        assert text.startswith("spec.resourceClaims[0].name: ")
    (text,) = violations(resourceClaims=[{**one, "resourceClaimName": "C"}])
    assert text.startswith("spec.resourceClaims[0].resourceClaimName: Invalid value")


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_containers_refer_to_claims_of_the_pod(field: str) -> None:
    claims = [{"name": "gpu", "resourceClaimName": "c"}]

    def of(*references: Any) -> list[str]:
        container = {"name": "c", "resources": {"claims": list(references)}}
        return violations(resourceClaims=claims, **{field: [container]})

    assert of({"name": "gpu"}) == []
    assert of({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}) == []
    place = f"spec.{field}[0].resources.claims"
    rule = "must be one of the names in pod.spec.resourceClaims"
    assert of({"name": "nic"}) == [f'{place}[0]: Not found: "nic": {rule}']
    assert of({"request": "a"}) == [f"{place}[0]: Required value"]
    twice = of({"name": "gpu", "request": "a"}, {"name": "gpu"})
    assert twice == [f'{place}[1]: Duplicate value: "gpu"']


@pytest.mark.parametrize(
    ("name", "is_extended"),
    [
        (GPU, True),
        ("cpu", False),
        ("requests.example.com/gpu", False),
        ("deviceclass.resource.kubernetes.io/gpu", False),
    ],
)
def test_extended_resources_have_a_domain_of_their_own(
    name: str, is_extended: bool
) -> None:
    assert is_extended_resource(name) is is_extended


AFFINITY = "podAntiAffinity"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


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
