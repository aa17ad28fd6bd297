"""Workloads of other projects in a cluster where none of their controllers runs.

A CRD of ours with the real names and any content, the object, and the pods that its
controller would make; Jobs make their pods themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.lab.cluster import GATES
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet

KUEUE = "kueue.x-k8s.io/v1beta2"
_KUEUE_KINDS = ("Workload", "AdmissionCheck")
_OF_CLUSTER = (
    "AdmissionCheck",
    "ClusterQueue",
    "ClusterTrainingRuntime",
    "Cohort",
    "ResourceFlavor",
)
"""Kinds whose objects are in no namespace."""


async def serve(kube: Kube, kinds: Iterable[tuple[str, str]]) -> list[Json]:
    """Let the API server serve the kinds of the projects; gives what it was told."""
    versions: dict[tuple[str, str], list[str]] = {}
    for api_version, kind in kinds:
        group, _, version = api_version.partition("/")
        versions.setdefault((group, kind), []).append(version)
    return await _serve(kube, [_crd(*item, *each) for item, each in versions.items()])


def list_queue_kinds() -> list[Json]:
    """Describe Kueue's kinds of queues, for the API server to serve."""
    group, _, version = KUEUE.partition("/")
    kinds = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor")
    return [_crd(group, kind, version) for kind in kinds]


async def serve_kueue(kube: Kube) -> list[Json]:
    """Let the API server serve the two kinds of Kueue that a check is about."""
    group, _, version = KUEUE.partition("/")
    workload, check = (_crd(group, kind, version) for kind in _KUEUE_KINDS)
    for crd in (workload, check):
        crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    return await _serve(kube, [workload, check])


async def stop_serving(kube: Kube, crds: list[Json]) -> None:
    """Delete what was served, until it is gone: the next test makes it again."""
    for crd in crds:
        await kube.delete(crd)
    for crd in crds:
        await kube.until_gone(crd)


async def _serve(kube: Kube, made: list[Json]) -> list[Json]:
    for crd in made:
        await kube.create(crd)
    for crd in made:
        await kube.until(crd, _is_served)
    return made


def _crd(group: str, kind: str, *versions: str) -> Json:
    """Describe a kind whose objects are stored in the first of its versions."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = [
        {
            "name": version,
            "served": True,
            "storage": version == versions[0],
            "schema": {"openAPIV3Schema": schema},
        }
        for version in versions
    ]
    # Groups of kubernetes.io and k8s.io are their community's: it wants to be asked.
    approval = {"api-approved.kubernetes.io": "unapproved, for tests"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": approval},
        "spec": {
            "group": group,
            "scope": "Cluster" if kind in _OF_CLUSTER else "Namespaced",
            "names": {"plural": plural, "kind": kind, "listKind": f"{kind}List"},
            "versions": served,
        },
    }


def _is_served(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def made_pod(site: Fleet, name: str, marks: Json, template: str) -> Json:
    """Describe a pod with such metadata at our gate; no template: without devices."""
    templates = {"d": template} if template else {}
    pod = objects.pod(site.namespace, name, templates=templates, schedulingGates=GATES)
    pod["metadata"] |= marks
    return pod


def made_job(
    site: Fleet,
    name: str,
    pods: int,
    template: str,
    marks: Mapping[str, Any] = {},
    **spec: Any,
) -> Json:
    """Describe a Job whose pods wait at our gate, without any label of ours."""
    pod = made_pod(site, "", {}, template)
    metadata = {"labels": marks.get("labels", {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": site.namespace, **marks},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": metadata, "spec": pod["spec"]},
            **spec,
        },
    }
