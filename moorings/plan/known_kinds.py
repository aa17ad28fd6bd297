"""Kinds of workload whose fields we know, with versions and defaults.

Anything else that has a pod template is read by its shape, so that the kinds of
operators count like a Job. But the shape says how many pods there are only where the
number is written under a name that we know. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.errors import DecodeError, UnknownKindError

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


_QUOTA = "Kueue's quotas are not checked"
_ADMISSION = "what admission would change or refuse is not checked"
_MAKE_NO_PODS = {
    "": {"PodTemplate": "it makes no pods itself; what refers to it does"},
    "apps": {"ControllerRevision": "it is an older revision of a workload"},
    "karpenter.sh": {"NodeClaim": "it makes a node, not pods"},
    "kueue.x-k8s.io": {
        "Workload": "it makes no pods itself; the job that it queues does"
    },
}
"""By group, the kinds that tell of pods that others make, or may make, and why so."""
_PASSED_BY = {
    **_MAKE_NO_PODS,
    "": {
        **_MAKE_NO_PODS[""],
        "LimitRange": _ADMISSION,
    },
    "apps": {
        **_MAKE_NO_PODS["apps"],
        "DaemonSet": "it requests no devices, and its pods are counted as Pods",
    },
    "kueue.x-k8s.io": {
        **_MAKE_NO_PODS["kueue.x-k8s.io"],
        **dict.fromkeys(
            ("AdmissionCheck", "ClusterQueue", "Cohort", "LocalQueue"), _QUOTA
        ),
        "ResourceFlavor": _QUOTA,
    },
    "moorings.dev": {
        "DeviceParameters": "it does not affect a plan",
        "Fleet": "it is for node agents; their ResourceSlices are read instead",
        "Sources": "it is for node agents; their ResourceSlices are read instead",
    },
    "resource.k8s.io": {
        "PodSchedulingContext": "it belongs to classic DRA, which was removed",
        "ResourcePoolStatusRequest": "it only queries a pool",
    },
    "scheduling.k8s.io": {"PriorityClass": _ADMISSION},
}
"""By group, all kinds that are known and not read, and why not."""


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
        reason = f"{api_version} is not supported; {known} {_verb(versions)}"
        raise DecodeError(name, "apiVersion", reason)
    for known_kind in _ONE_UNLESS_SAID.get(group, ()):
        if kind != known_kind and kind.lower() == known_kind.lower():
            reason = f"{api_version} has no kind {kind}; did you mean {known_kind}?"
            raise DecodeError(name, "kind", reason)


def is_one_unless_said(raw: Mapping[str, Any]) -> bool:
    """True if a workload has one pod of a role by default."""
    group = str(raw.get("apiVersion", "")).rpartition("/")[0]
    return raw.get("kind") in _ONE_UNLESS_SAID.get(group, ())


def makes_no_pods(raw: Mapping[str, Any]) -> bool:
    """True if an object only describes pods and makes none."""
    group = str(raw.get("apiVersion", "")).rpartition("/")[0]
    return raw.get("kind") in _MAKE_NO_PODS.get(group, {})


def explain_passed_by(error: UnknownKindError) -> str:
    """Return why a known kind is skipped; empty if it is unknown."""
    group = error.api_version.rpartition("/")[0]
    why = _PASSED_BY.get(group, {}).get(error.kind, "")
    return why and f"{error.kind} of {error.api_version}: {why}"


def _verb(versions: tuple[str, ...]) -> str:
    return "is" if len(versions) == 1 else "are"
