"""Objects of Kueue, as far as the controller of AdmissionChecks must know them.

Field names are those of kueue.x-k8s.io/v1beta2 (Kueue v0.19).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from contracts.errors import DecodeError
from contracts.gang import NodeToleration
from contracts.meta import ObjectMeta
from contracts.shapes import read
from contracts.structs import KubernetesExcerpt
from contracts.workload import PodTemplate

CONTROLLER = "moorings.dev/publisher"
"""`spec.controllerName` of the AdmissionChecks that are ours."""
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""`spec.controllerName` of the checks that send a Workload to another cluster."""
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
"""Annotation that keeps a Workload out of its queue: names of gates, by commas."""
ADMISSION_GATE = "moorings.dev/devices"
"""Our name in `GATED_BY`: first devices, then quota."""


class KueueCondition(KubernetesExcerpt, frozen=True, kw_only=True):
    """One observation of a Workload, such as `QuotaReserved`."""

    type: str = ""
    status: str = ""
    last_transition_time: str = ""


class KueuePodSet(KubernetesExcerpt, frozen=True, kw_only=True):
    """Equal pods that a Workload will have."""

    name: str = "main"
    count: int = 1
    template: PodTemplate = PodTemplate()


class KueueCheckState(KubernetesExcerpt, frozen=True, kw_only=True):
    """What an AdmissionCheck says of a Workload."""

    name: str = ""
    state: str = ""
    message: str = ""
    retry_count: int | None = None
    """How often it was `Retry`, as Kueue counts; it forgets when it was admitted."""


class _Individual(KubernetesExcerpt, frozen=True, kw_only=True):
    prefix: str = ""
    suffix: str = ""
    roots: tuple[str, ...] = ()


class _LevelValues(KubernetesExcerpt, frozen=True, kw_only=True):
    universal: str | None = None
    individual: _Individual = _Individual()

    def value(self, domain: int) -> str:
        """Return the label's value in a domain of the slice."""
        if self.universal is not None:
            return self.universal
        each = self.individual
        return f"{each.prefix}{each.roots[domain]}{each.suffix}"


class _PodCounts(KubernetesExcerpt, frozen=True, kw_only=True):
    universal: int | None = None
    individual: tuple[int, ...] = ()


class _TopologySlice(KubernetesExcerpt, frozen=True, kw_only=True):
    domain_count: int = 0
    values_per_level: tuple[_LevelValues, ...] = ()
    pod_counts: _PodCounts = _PodCounts()


class KueueTopologyAssignment(KubernetesExcerpt, frozen=True, kw_only=True):
    """The topology domains of a pod set's pods, in Kueue's compressed form."""

    levels: tuple[str, ...] = ()
    """Node labels, the widest domain first."""
    slices: tuple[_TopologySlice, ...] = ()

    def domains(self) -> Iterator[tuple[dict[str, str], int]]:
        """Go through the domains: the labels of their nodes, and how many pods.

        Raises:
            DecodeError: a slice has fewer values than domains.
        """
        for part in self.slices:
            counts = part.pod_counts
            try:
                for domain in range(part.domain_count):
                    values = (each.value(domain) for each in part.values_per_level)
                    labels = dict(zip(self.levels, values, strict=True))
                    universal = counts.universal
                    count = universal or counts.individual[domain]
                    yield labels, count
            except (IndexError, ValueError) as error:
                field, reason = "slices", "a slice lacks values of its domains"
                raise DecodeError("topologyAssignment", field, reason) from error


class KueuePodSetAssignment(KubernetesExcerpt, frozen=True, kw_only=True):
    """What Kueue gave quota to."""

    name: str = ""
    count: int | None = None
    """Number of pods: fewer than the pod set has if it is admitted in part."""
    flavors: dict[str, str] = {}
    """By resource, the ResourceFlavor whose quota is used."""
    topology_assignment: KueueTopologyAssignment | None = None
    delayed_topology_request: str = ""
    """`Pending`: the topology is assigned later."""


class _Admission(KubernetesExcerpt, frozen=True, kw_only=True):
    pod_set_assignments: tuple[KueuePodSetAssignment, ...] = ()


class _WorkloadSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    pod_sets: tuple[KueuePodSet, ...] = ()
    active: bool = True
    priority: int | None = None


class _WorkloadStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    conditions: tuple[KueueCondition, ...] = ()
    admission_checks: tuple[KueueCheckState, ...] = ()
    admission: _Admission = _Admission()


class KueueWorkload(KubernetesExcerpt, frozen=True, kw_only=True):
    """A Workload, as far as the check must know it."""

    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that keep it out of its queue."""
        names = self.metadata.annotations.get(GATED_BY, "").split(",")
        return tuple(name.strip() for name in names if name.strip())

    def condition(self, kind: str) -> KueueCondition | None:
        """Return a condition that holds; None: it does not."""
        conditions = self.status.conditions
        return next(
            (c for c in conditions if c.type == kind and c.status == "True"), None
        )


class _AdmissionCheckSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    controller_name: str = ""


class _AdmissionCheckStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    conditions: tuple[KueueCondition, ...] = ()


class KueueAdmissionCheck(KubernetesExcerpt, frozen=True, kw_only=True):
    """An AdmissionCheck, as far as its controller must know it."""

    spec: _AdmissionCheckSpec = _AdmissionCheckSpec()
    status: _AdmissionCheckStatus = _AdmissionCheckStatus()

    @property
    def sends_away(self) -> bool:
        """True if its Workloads run in another cluster."""
        return self.spec.controller_name == MULTIKUEUE

    @property
    def is_ours(self) -> bool:
        """True if we answer for it."""
        return self.spec.controller_name == CONTROLLER

    @property
    def is_active(self) -> bool:
        """True if Kueue has been told that somebody answers."""
        conditions = self.status.conditions
        return any(c.type == "Active" and c.status == "True" for c in conditions)


class _FlavorSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    node_labels: dict[str, str] = {}
    tolerations: tuple[NodeToleration, ...] = ()


class KueueFlavor(KubernetesExcerpt, frozen=True, kw_only=True):
    """A ResourceFlavor: nodes with these labels, and what its pods tolerate.

    Its `nodeTaints` are matched by Kueue against the pods and change nothing on them.
    """

    spec: _FlavorSpec = _FlavorSpec()


def read_kueue_workload(raw: Mapping[str, Any]) -> KueueWorkload:
    """Read a Workload.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    metadata = raw.get("metadata") or {}
    what = f"Workload {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return read(raw, KueueWorkload, what, [])


def read_admission_check(raw: Mapping[str, Any], name: str) -> KueueAdmissionCheck:
    """Read an AdmissionCheck.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    return read(raw, KueueAdmissionCheck, f"AdmissionCheck {name}", [])


def read_flavor(raw: Mapping[str, Any], name: str) -> KueueFlavor:
    """Read a ResourceFlavor.

    Raises:
        DecodeError: a value is not of the type that its field has.
    """
    return read(raw, KueueFlavor, f"ResourceFlavor {name}", [])
