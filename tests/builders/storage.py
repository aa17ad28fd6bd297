"""Volumes of pods: claims, volumes and classes, valid unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.meta import ObjectMeta
from contracts.pods.volumes import IS_BOUND
from contracts.quantity import Quantity
from contracts.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    TopologyRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumeResources,
)
from contracts.workload import PodVolume, PodVolumeClaim
from tests.builders.values import NAMESPACE

ZONE = "topology.kubernetes.io/zone"
_MODES = ("ReadWriteOnce",)


def volume_of(claim: str = "data") -> PodVolume:
    """Make a volume of a pod that is a claim."""
    return PodVolume(
        name=claim, persistent_volume_claim=PodVolumeClaim(claim_name=claim)
    )


def volume_claim(
    name: str = "data",
    *,
    bound_to: str = "",
    storage_class: str = "late",
    size: str = "1Gi",
    annotations: Mapping[str, str] | None = None,
) -> PersistentVolumeClaim:
    """Make a claim, bound to a volume or not."""
    notes = dict(annotations or {}) | ({IS_BOUND: "yes"} if bound_to else {})
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name, namespace=NAMESPACE, uid=f"uid-{name}", annotations=notes
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=_MODES,
            storage_class_name=storage_class,
            volume_name=bound_to,
            resources=VolumeResources(requests={"storage": Quantity.parse(size)}),
        ),
    )


def volume(
    name: str = "pv-1",
    *,
    nodes: Iterable[str] = (),
    zone: str = "",
    storage_class: str = "late",
    size: str = "1Gi",
) -> PersistentVolume:
    """Make a volume that only some nodes reach, by name or by its label of a zone."""
    requirement = NodeSelectorRequirement(
        key="kubernetes.io/hostname", operator="In", values=tuple(nodes)
    )
    term = NodeSelectorTerm(match_expressions=(requirement,))
    required = NodeSelector(node_selector_terms=(term,))
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels={ZONE: zone} if zone else {}),
        spec=PersistentVolumeSpec(
            access_modes=_MODES,
            capacity={"storage": Quantity.parse(size)},
            storage_class_name=storage_class,
            node_affinity=VolumeNodeAffinity(required=required) if nodes else None,
        ),
    )


def storage_class(
    name: str = "late", *, provisioner: str = "", zones: Iterable[str] = ()
) -> StorageClass:
    """Make a class that waits for the first consumer."""
    places = tuple(zones)
    topology = TopologySelectorTerm(
        match_label_expressions=(TopologyRequirement(key=ZONE, values=places),)
    )
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner or "kubernetes.io/no-provisioner",
        volume_binding_mode="WaitForFirstConsumer",
        allowed_topologies=(topology,) if places else (),
    )
