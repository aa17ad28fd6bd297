"""Volumes of pods, as far as they decide on which nodes pods can run.

Excerpts of the core and storage.k8s.io API: nothing here can be written back.
"""

from __future__ import annotations

from contracts.device import NodeSelector
from contracts.labels import LabelSelector
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from contracts.structs import KubernetesExcerpt


class VolumeResources(KubernetesExcerpt, frozen=True, kw_only=True):
    """How large a volume must be."""

    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    """The spec of a PersistentVolumeClaim, and its bound volume."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResources = VolumeResources()
    selector: LabelSelector | None = None
    storage_class_name: str = ""
    volume_mode: str = ""
    volume_name: str = ""


class PersistentVolumeClaimStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """How far a claim is."""

    phase: str = ""
    """`Pending`, `Bound` or `Lost`."""


class PersistentVolumeClaim(KubernetesExcerpt, frozen=True, kw_only=True):
    """A volume that a pod asks for by the name of its claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(KubernetesExcerpt, frozen=True, kw_only=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class ClaimReference(KubernetesExcerpt, frozen=True, kw_only=True):
    """The claim that a volume is bound to, or kept for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    """The spec of a PersistentVolume."""

    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str = ""


class PersistentVolumeStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """How far a volume is."""

    phase: str = ""
    """`Available`, `Bound`, `Released` ..."""


class PersistentVolume(KubernetesExcerpt, frozen=True, kw_only=True):
    """A volume that is there."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyRequirement(KubernetesExcerpt, frozen=True, kw_only=True):
    """Values that a label of the node may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubernetesExcerpt, frozen=True, kw_only=True):
    """Labels that must all be so."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(KubernetesExcerpt, frozen=True, kw_only=True):
    """A StorageClass: its provisioner, binding mode and topology."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = ""
    """`Immediate` (also when absent) or `WaitForFirstConsumer`."""
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    """Terms of which one must hold; none: everywhere."""
