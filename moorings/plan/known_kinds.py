"""Kinds of workload whose fields we know: in which versions, and what they default.

Anything else that has a pod template is read by its shape, so that the kinds of
operators count like a Job. But the shape says how many pods there are only where the
number is written under a name that we know. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.errors import DecodeError

_BUILT_IN = ("v1",)
_VERSIONS: dict[str, tuple[str, ...]] = {
    "": _BUILT_IN,
    "apps": _BUILT_IN,
    "batch": _BUILT_IN,
    "jobset.x-k8s.io": ("v1alpha2",),
    "kubeflow.org": ("v1", "v2beta1"),
    "ray.io": ("v1", "v1alpha1"),
}
"""By group of workloads, the versions that are read."""
_ONE_UNLESS_SAID = {
    "": ("ReplicationController",),
    "apps": ("Deployment", "ReplicaSet", "StatefulSet"),
    "batch": ("CronJob", "Job"),
    "batch.volcano.sh": ("Job",),
    "jobset.x-k8s.io": ("JobSet",),
    "kubeflow.org": (
        "JAXJob",
        "MPIJob",
        "MXJob",
        "PaddleJob",
        "PyTorchJob",
        "TFJob",
        "XGBoostJob",
    ),
    "ray.io": ("RayCluster", "RayJob", "RayService"),
    "workload.codeflare.dev": ("AppWrapper",),
}
"""By group, the kinds that have one pod of a role where no number is written."""


_MAKE_NO_PODS = {
    "": ("PodTemplate",),
    "apps": ("ControllerRevision",),
    "karpenter.sh": ("NodeClaim",),
    "kueue.x-k8s.io": ("Workload",),
    "trainer.kubeflow.org": ("ClusterTrainingRuntime", "TrainingRuntime"),
}
"""By group, the kinds that tell of pods that others make, or may make."""


def check_version(api_version: str, kind: str, name: str) -> None:
    """Require a version and a kind that a group of workloads has.

    Raises:
        DecodeError: what the fields of such an object mean is not known.
    """
    group, _, version = api_version.rpartition("/")
    versions = _VERSIONS.get(group)
    if versions is None:
        return
    if version not in versions:
        known = " and ".join(f"{group}/{each}".lstrip("/") for each in versions)
        reason = f"{api_version} is not read; {known} {_verb(versions)}"
        raise DecodeError(name, "apiVersion", reason)
    for known_kind in _ONE_UNLESS_SAID.get(group, ()):
        if kind != known_kind and kind.lower() == known_kind.lower():
            reason = f"{api_version} has no kind {kind}; {known_kind} is one"
            raise DecodeError(name, "kind", reason)


def is_one_unless_said(raw: Mapping[str, Any]) -> bool:
    """Whether a workload has one pod of a role where it does not say how many."""
    group = str(raw.get("apiVersion", "")).rpartition("/")[0]
    return raw.get("kind") in _ONE_UNLESS_SAID.get(group, ())


def makes_no_pods(raw: Mapping[str, Any]) -> bool:
    """Whether an object only describes pods, whatever templates it has."""
    group = str(raw.get("apiVersion", "")).rpartition("/")[0]
    return raw.get("kind") in _MAKE_NO_PODS.get(group, ())


def _verb(versions: tuple[str, ...]) -> str:
    return "is" if len(versions) == 1 else "are"
