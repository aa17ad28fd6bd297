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


def test_containers_add_up() -> None:
    """They run at one time."""
    both = [container(cpu="500m", memory="1Gi"), container(cpu="1")]
    assert asked(containers=both) == {"cpu": 1500, "memory": GIB}


def test_init_containers_run_alone_so_the_largest_counts() -> None:
    """Unless all others together need more."""
    init = [container(cpu="3"), container(cpu="2", memory="2Gi")]
    main = [container(cpu="1", memory="1Gi")]
    assert asked(initContainers=init, containers=main) == {
        "cpu": 3000,
        "memory": 2 * GIB,
    }


def test_sidecars_run_along_with_what_starts_after_them() -> None:
    """KEP-753: a later init container runs beside the sidecars before it."""
    init = [container(cpu="2"), container("Always", cpu="1"), container(cpu="3")]
    main = [container(cpu="1")]
    assert asked(initContainers=init, containers=main) == {"cpu": 4000}
    assert asked(initContainers=init[1:2], containers=main) == {"cpu": 2000}


def test_what_is_said_of_the_pod_wins_over_its_containers() -> None:
    """KEP-2837; only CPU, memory and huge pages can be said of a pod."""
    main = [{"resources": {"requests": {"cpu": "1", "example.com/a": "1"}}}]
    whole = {"requests": {"cpu": "4", "example.com/a": "9"}}
    assert asked(containers=main, resources=whole) == {"cpu": 4000, "example.com/a": 1}


def test_a_limit_of_the_pod_counts_where_no_container_asks() -> None:
    """As Kubernetes defaults its request."""
    main = [container(cpu="1")]
    whole = {"limits": {"cpu": "4", "memory": "1Gi"}}
    assert asked(containers=main, resources=whole) == {"cpu": 1000, "memory": GIB}


def test_limits_stand_for_requests_that_are_not_said() -> None:
    """As Kubernetes defaults them."""
    main = [{"resources": {"limits": {"cpu": "2"}}}]
    assert asked(containers=main) == {"cpu": 2000}


def test_overhead_comes_on_top() -> None:
    """Of whatever the containers need."""
    main = [container(cpu="1")]
    assert asked(containers=main, overhead={"cpu": "250m"}) == {"cpu": 1250}


def test_a_pod_that_asks_for_nothing_asks_for_nothing() -> None:
    """Without the defaults that only scoring uses."""
    assert asked(containers=[{}, container(cpu="0")]) == {}


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
