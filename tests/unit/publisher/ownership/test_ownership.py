"""What is owned by drivers, device classes and labels of nodes."""

from __future__ import annotations

import pytest

from contracts.ids import DeviceClassName, DriverName, NodeName, PoolID, PoolName
from publisher.ownership.ownership import Ownership
from tests import builders

GPU, NIC = DriverName("gpu.nvidia.com"), DriverName("net.example.com")
POOL = PoolID(GPU, PoolName("node-1"))
NODE = NodeName("node-1")
ONE = Ownership.of((GPU,), (), ())
LABELS = {"pool": "training", "zone": "a"}


def test_nothing_named_means_everything_is_decided_here() -> None:
    """Ownership is taken away only by naming what is owned."""
    spec = builders.resource_slice().spec
    everything = Ownership()
    assert everything.owns_driver(GPU)
    assert everything.owns_class(DeviceClassName("gpu"))
    assert everything.owns_node({})
    assert everything.owns_slice(spec, None)
    assert everything.owns_claim(builders.claim().spec)


def test_claim_without_any_owned_class_is_left_alone() -> None:
    """One owned class makes a claim ours, none does not."""
    owned = Ownership.of((), ("gpu",), ())
    gpu, nic = (builders.request(name, device_class=name) for name in ("gpu", "nic"))
    assert owned.owns_claim(builders.claim(gpu, nic).spec)
    assert not owned.owns_claim(builders.claim(nic).spec)


@pytest.mark.parametrize(
    ("owned", "taints"),
    [
        (Ownership(), False),
        (Ownership.of((), ("gpu",), ()), False),
        (Ownership.of((GPU,), ("gpu",), ()), True),
        (Ownership.of((NIC,), (), ()), False),
        (Ownership.of((), ("gpu",), ("pool=training",)), True),
        (Ownership.of((NIC,), (), ("pool=training",)), False),
    ],
)
def test_only_what_is_named_is_kept_from_kube_scheduler(
    owned: Ownership, taints: bool
) -> None:
    """Whoever names nothing keeps nobody out."""
    assert owned.taints_driver(GPU) is taints


@pytest.mark.parametrize(
    ("spec", "labels", "is_owned"),
    [
        ({}, LABELS, True),
        ({}, {"pool": "training"}, False),
        ({}, None, False),
        ({"all_nodes": True}, None, False),
        ({"driver": NIC}, LABELS, False),
    ],
)
def test_slice_is_owned_with_its_driver_and_its_one_node(
    spec: dict[str, object], labels: dict[str, str] | None, is_owned: bool
) -> None:
    """Both must be owned; a slice of no one node has no labels."""
    owned = Ownership.of((GPU,), (), ("pool=training", "zone=a"))
    made = builders.resource_slice(**{"driver": GPU, **spec})  # type: ignore[arg-type] # fields of the builder
    assert owned.owns_slice(made.spec, labels) is is_owned
