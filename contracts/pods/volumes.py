"""The nodes on which a pod's volumes are available, by kube-scheduler's rules.

What volumes require is said as node selectors, so whoever chooses nodes needs to know
nothing of volumes. Which node gets how many of several volumes that are still free, how
many volumes a node can attach, and how much room a driver has left is not decided here:
kube-scheduler refuses the pod then. Knows no node.

Source: plugins VolumeBinding, VolumeZone and VolumeRestrictions of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from contracts.device import (
    NODE_FIELD,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.labels import LabelSelector, does_match
from contracts.meta import ObjectMeta
from contracts.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from contracts.workload import PodSpec

IS_BOUND = "pv.kubernetes.io/bind-completed"
"""Annotation of claims: both sides of the binding were written."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of claims: the node for which the volume is being made."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_LATE = "WaitForFirstConsumer"
_FILESYSTEM = "Filesystem"
_STORAGE = "storage"
_PLACES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""Labels of volumes that nodes must share (VolumeZone)."""


class VolumeLookup(Protocol):
    """The known claims, volumes and storage classes."""

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """Return a claim by `namespace/name`."""

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume."""

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a class."""

    def free_volumes(self, storage_class: str) -> Iterable[PersistentVolume]:
        """Go through the volumes of a class that no claim is bound to."""


class MissingVolume(Struct, frozen=True, kw_only=True):
    """Why kube-scheduler would not try any node for a pod."""

    claim: str
    """Name of the PersistentVolumeClaim."""
    message: str


def list_volume_claims(metadata: ObjectMeta, spec: PodSpec) -> Iterator[str]:
    """Name the PersistentVolumeClaims of a pod; ephemeral ones are named after it."""
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{metadata.name}-{volume.name}"


def find_volume_nodes(
    metadata: ObjectMeta, spec: PodSpec, lookup: VolumeLookup
) -> tuple[NodeSelector, ...] | MissingVolume:
    """Return selectors that must all match the nodes of a pod's volumes."""
    selectors: dict[NodeSelector, None] = {}
    for name in list_volume_claims(metadata, spec):
        claim = lookup.claim(f"{metadata.namespace}/{name}")
        missing = _find_missing(name, claim)
        if missing or claim is None:
            return MissingVolume(claim=name, message=missing)
        of_claim = _selectors_of(claim, lookup)
        if isinstance(of_claim, str):
            return MissingVolume(claim=name, message=of_claim)
        selectors |= dict.fromkeys(of_claim)
    return tuple(selectors)


def _find_missing(name: str, claim: PersistentVolumeClaim | None) -> str:
    """Return why a claim cannot be used yet; empty if it can."""
    if claim is None:
        return f"no PersistentVolumeClaim {name} yet"
    if claim.metadata.deletion_timestamp:
        return f"PersistentVolumeClaim {name} is being deleted"
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f"PersistentVolumeClaim {name} has lost its PersistentVolume {volume}"
    return ""


def _selectors_of(
    claim: PersistentVolumeClaim, lookup: VolumeLookup
) -> list[NodeSelector] | str:
    """Return where one claim is available; a text: nowhere yet, and why."""
    name, spec = claim.metadata.name, claim.spec
    if spec.volume_name and IS_BOUND in claim.metadata.annotations:
        volume = lookup.volume(spec.volume_name)
        if volume is None:
            return f"PersistentVolume {spec.volume_name} of {name} does not exist"
        return [*_of_volume(volume), *_of_zone(volume)]
    storage_class = lookup.storage_class(spec.storage_class_name)
    is_late = storage_class is not None and storage_class.volume_binding_mode == _LATE
    if spec.volume_name or not is_late or storage_class is None:
        return f"PersistentVolumeClaim {name} is not bound to a PersistentVolume yet"
    node = claim.metadata.annotations.get(SELECTED_NODE)
    if node:
        field = NodeSelectorRequirement(key=NODE_FIELD, operator="In", values=(node,))
        return [_any_of([NodeSelectorTerm(match_fields=(field,))])]
    places = [*_where_free(claim, lookup), *_where_made(storage_class)]
    if not places:
        return (
            f"no free PersistentVolume of StorageClass {spec.storage_class_name} "
            f"fits PersistentVolumeClaim {name}"
        )
    return [] if None in places else [_any_of(filter(None, places))]


# --- volumes that are there -----------------------------------------------------------


def _of_volume(volume: PersistentVolume) -> Iterator[NodeSelector]:
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        yield affinity.required


def _of_zone(volume: PersistentVolume) -> Iterator[NodeSelector]:
    """Require a node of the volume's zone; nodes without any zone will do as well."""
    places = tuple(
        NodeSelectorRequirement(
            key=key,
            operator="In",
            values=tuple(sorted(volume.metadata.labels[key].split("__"))),
        )
        for key in _PLACES
        if key in volume.metadata.labels
    )
    if places:
        nowhere = tuple(
            NodeSelectorRequirement(key=key, operator="DoesNotExist") for key in _PLACES
        )
        yield NodeSelector(
            node_selector_terms=(
                NodeSelectorTerm(match_expressions=places),
                NodeSelectorTerm(match_expressions=nowhere),
            )
        )


def _where_free(
    claim: PersistentVolumeClaim, lookup: VolumeLookup
) -> Iterator[NodeSelectorTerm | None]:
    """Go through the places of volumes that could be bound to a claim.

    None: one of them can be had everywhere.
    """
    for volume in lookup.free_volumes(claim.spec.storage_class_name):
        if _will_do(volume, claim):
            selectors = list(_of_volume(volume))
            if not selectors:
                yield None
            for selector in selectors:
                yield from selector.node_selector_terms


def _where_made(storage_class: StorageClass) -> Iterator[NodeSelectorTerm | None]:
    """Go through the places where a new volume can be made; None: everywhere."""
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return
    if not storage_class.allowed_topologies:
        yield None
    for topology in storage_class.allowed_topologies:
        yield NodeSelectorTerm(
            match_expressions=tuple(
                NodeSelectorRequirement(key=one.key, operator="In", values=one.values)
                for one in topology.match_label_expressions
            )
        )


def _will_do(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    asked, has, kept = claim.spec, volume.spec, volume.spec.claim_ref
    if kept is not None and not _is_kept_for(claim, volume):
        return False
    wanted, amount = asked.resources.requests.get(_STORAGE), has.capacity.get(_STORAGE)
    return (
        volume.metadata.deletion_timestamp is None
        and (asked.volume_mode or _FILESYSTEM) == (has.volume_mode or _FILESYSTEM)
        and set(asked.access_modes) <= set(has.access_modes)
        and does_match(asked.selector or LabelSelector(), volume.metadata.labels)
        and (wanted is None or (amount is not None and wanted <= amount))
    )


def _is_kept_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    meta, kept = claim.metadata, volume.spec.claim_ref
    return kept is not None and (
        (kept.namespace, kept.name) == (meta.namespace, meta.name)
        and kept.uid in ("", meta.uid)
    )


# --- terms ----------------------------------------------------------------------------


def _any_of(terms: Iterable[NodeSelectorTerm]) -> NodeSelector:
    """Return a selector of any of several terms, those of one label merged.

    A thousand local volumes are a thousand values, not a thousand terms.
    """
    values_by_key: dict[tuple[str, bool], set[str]] = {}
    others: dict[NodeSelectorTerm, None] = {}
    for term in terms:
        single = (*term.match_expressions, *term.match_fields)
        if len(single) == 1 and single[0].operator == "In":
            key = single[0].key, bool(term.match_fields)
            values_by_key.setdefault(key, set()).update(single[0].values)
        else:
            others[term] = None
    merged = []
    for (label, is_field), values in sorted(values_by_key.items()):
        one = NodeSelectorRequirement(
            key=label, operator="In", values=tuple(sorted(values))
        )
        merged.append(
            NodeSelectorTerm(match_fields=(one,))
            if is_field
            else NodeSelectorTerm(match_expressions=(one,))
        )
    return NodeSelector(node_selector_terms=(*merged, *others))
