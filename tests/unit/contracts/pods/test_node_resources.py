"""What pods ask of nodes is counted as kube-scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.codec import convert
from contracts.pods.node_resources import (
    count_allocatable,
    count_requested,
    sum_requests,
)
from contracts.quantity import Quantity
from contracts.workload import PodSpec

GIB = 2**30


def container(restart: str | None = None, **requests: str) -> dict[str, Any]:
    resources = {"requests": requests}
    return {"resources": resources, "restartPolicy": restart}


def asked(**spec: Any) -> dict[str, int]:
    return count_requested(sum_requests(convert(spec, PodSpec, "pod")))


ONE = container(cpu="1")
INIT = [container(cpu="2"), container("Always", cpu="1"), container(cpu="3")]
LARGE = [container(cpu="3"), container(cpu="2", memory="2Gi")]
WITH_A = {"resources": {"requests": {"cpu": "1", "example.com/a": "1"}}}
LIMITED = {"resources": {"limits": {"cpu": "2"}}}


@pytest.mark.parametrize(
    ("containers", "more", "amounts"),
    [
        # Containers run at one time.
        ([container(cpu="500m", memory="1Gi"), ONE], {}, {"cpu": 1500, "memory": GIB}),
        # Init containers run alone: the largest counts, unless all others need more.
        (
            [container(cpu="1", memory="1Gi")],
            {"initContainers": LARGE},
            {"cpu": 3000, "memory": 2 * GIB},
        ),
        # KEP-753: a later init container runs beside the sidecars before it.
        ([ONE], {"initContainers": INIT}, {"cpu": 4000}),
        ([ONE], {"initContainers": INIT[1:2]}, {"cpu": 2000}),
        # KEP-2837: what the pod says wins, of CPU, memory and huge pages alone.
        (
            [WITH_A],
            {"resources": {"requests": {"cpu": "4", "example.com/a": "9"}}},
            {"cpu": 4000, "example.com/a": 1},
        ),
        # As Kubernetes defaults requests: a limit of the pod where no container asks.
        (
            [ONE],
            {"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}},
            {"cpu": 1000, "memory": GIB},
        ),
        ([LIMITED], {}, {"cpu": 2000}),
        # Overhead comes on top of whatever the containers need.
        ([ONE], {"overhead": {"cpu": "250m"}}, {"cpu": 1250}),
        # Without the defaults that only scoring uses.
        ([{}, container(cpu="0")], {}, {}),
    ],
)
def test_a_pod_needs_what_kube_scheduler_counts(
    containers: list[Any], more: dict[str, Any], amounts: dict[str, int]
) -> None:
    """Of its containers, at the time at which they need most, and of itself."""
    assert asked(containers=containers, **more) == amounts


@pytest.mark.parametrize(
    ("name", "text", "up", "down"),
    [
        ("cpu", "1", 1000, 1000),
        ("cpu", "1500u", 2, 1),
        ("memory", "1Ki", 1024, 1024),
        ("memory", "1500m", 2, 1),
        ("example.com/a", "3", 3, 3),
        ("memory", "99E99", 2**63 - 1, 2**63 - 1),
    ],
)
def test_needs_are_rounded_up_and_offers_down(
    name: str, text: str, up: int, down: int
) -> None:
    """So that rounding never makes a pod fit."""
    amounts = {name: Quantity.parse(text)}
    assert count_requested(amounts) == {name: up}
    assert count_allocatable(amounts) == {name: down}
