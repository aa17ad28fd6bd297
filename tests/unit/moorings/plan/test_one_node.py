"""What is asked of one node is all decided there, or it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from moorings.errors import BadInputError, UsageError
from moorings.plan.one_node import check_one_node
from tests import builders
from tests.builders.inputs import GATED, entries, pod_spec, written_job, written_pod

SLICE = builders.resource_slice(*builders.devices(1), node="node-1")


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (builders.gang(name="train"), "Gang .*/train"),
        (written_pod("p", template="one", **GATED), "Pod .*/p"),
        (written_job("j", 2, template="one"), "Job .*/j"),
    ],
)
def test_what_would_be_left_out_is_refused_by_name(other: Any, name: str) -> None:
    """A yes would be taken for theirs."""
    with pytest.raises(UsageError, match=f"would leave out {name}"):
        check_one_node(entries(SLICE, builders.claim(), other), "node-1")


def test_pods_that_have_their_node_ask_for_nothing() -> None:
    running = written_pod("p", nodeName="node-1")
    check_one_node(entries(SLICE, builders.claim(), running), "node-1")


def test_a_node_that_nothing_names_is_an_error() -> None:
    with pytest.raises(BadInputError, match="--node nosuch: no Node or ResourceSlice"):
        check_one_node(entries(SLICE, builders.claim()), "nosuch")


def test_without_nodes_a_slice_for_all_of_them_means_any() -> None:
    everywhere = builders.resource_slice(*builders.devices(1), node="", all_nodes=True)
    check_one_node(entries(everywhere), "any")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-2"}}
    with pytest.raises(BadInputError, match="--node any"):
        check_one_node(entries(everywhere, node), "any")


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": builders.NAMESPACE},
}


def written_deployment(replicas: int, **spec: Any) -> dict[str, Any]:
    """Write a Deployment of so many pods."""
    template = {"metadata": {}, "spec": pod_spec(**spec)}
    return {**DEPLOYMENT, "spec": {"replicas": replicas, "template": template}}


@pytest.mark.parametrize(
    "others",
    [
        [written_pod("p")],
        [written_deployment(2)],
        [written_deployment(0, template="one")],
        [
            written_deployment(1, template="one"),
            written_pod(
                "p",
                template="one",
                nodeName="node-1",
                metadata={
                    "ownerReferences": [
                        {"kind": "Deployment", "name": "d", "controller": True}
                    ]
                },
            ),
        ],
    ],
)
def test_what_asks_for_no_device_any_more_is_left_out(others: list[Any]) -> None:
    """A dump of a cluster has such things beside its claims."""
    check_one_node(entries(SLICE, builders.claim(), *others), "node-1")


def test_pods_that_ask_for_extended_resources_are_refused() -> None:
    gpus = {"limits": {"nvidia.com/gpu": "1"}}
    pod = written_pod("p", containers=[{"name": "c", "resources": gpus}])
    with pytest.raises(UsageError, match=r"Pod .*/p"):
        check_one_node(entries(SLICE, builders.claim(), pod), "node-1")
