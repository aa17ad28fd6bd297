"""Pods that the API server does not take are just those that a plan calls Invalid."""

from __future__ import annotations

from typing import Any

from contracts.shapes import read
from contracts.validate.pods import check_pod_spec
from contracts.workload import PodSpec
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError

GPU = "example.com/gpu"
INVALID = 422
AMOUNTS = (
    *("3", "3000m", "3Ki", "1e3", "0", "3.0", "999.9m", "1000.0001m"),
    *("0.5", "1500m", "1m", "1n", "2.0001", "-1"),
)
RESOURCES: tuple[Json, ...] = (
    *({"limits": {GPU: amount}} for amount in AMOUNTS),
    {"requests": {GPU: "1"}},
    {"requests": {GPU: "1"}, "limits": {GPU: "2"}},
    {"requests": {GPU: "1000m"}, "limits": {GPU: "1"}},
    {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
    {"requests": {"cpu": "0.5"}},
    {"claims": [{"name": "gpu"}]},
    {"claims": [{"name": "nic"}]},
    {"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu"}]},
    {"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}]},
)
CLAIMS: tuple[list[Json], ...] = (
    [{"name": "gpu"}],
    [{"name": "gpu", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}],
    [{"name": "gpu", "resourceClaimName": "C"}],
    [{"name": "Gpu", "resourceClaimName": "c"}],
    [{"name": "gpu", "resourceClaimName": "c"}] * 2,
    [{"name": "gpu", "resourceClaimTemplateName": "t"}],
)


def pods(namespace: str) -> list[Json]:
    """Describe one pod for each of these."""
    made: list[Json] = []
    for resources in RESOURCES:
        pod = objects.pod(namespace, f"r-{len(made)}", claims={"gpu": "c"}, gated=True)
        pod["spec"]["containers"][0]["resources"] = resources
        made.append(pod)
    for claims in CLAIMS:
        pod = objects.pod(namespace, f"r-{len(made)}", gated=True)
        pod["spec"]["resourceClaims"] = claims
        made.append(pod)
    return made


async def refusal(kube: Kube, pod: Json) -> str:
    """Create a pod; returns why it was refused."""
    try:
        await kube.create(pod)
    except RefusedError as error:
        if error.status != INVALID:
            raise
        return error.message
    return ""


async def test_we_refuse_what_the_api_server_refuses(
    kube: Kube, namespace: str
) -> None:
    """By the same fields, too: the first that we name is among those that it names."""
    differences: list[Any] = []
    for pod in pods(namespace):
        theirs = await refusal(kube, pod)
        spec = read(pod["spec"], PodSpec, "pod", [])
        ours = list(check_pod_spec(spec))
        fields = [one.field for one in ours]
        if bool(theirs) != bool(ours) or any(one not in theirs for one in fields[:1]):
            differences.append((pod["spec"], theirs, [str(one) for one in ours]))
    assert differences == []
