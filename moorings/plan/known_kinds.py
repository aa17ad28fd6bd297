"""Kinds of workload whose fields we know, with versions and defaults.

Anything else that has a pod template is read by its shape, so that the kinds of
operators count like a Job. But the shape says how many pods there are only where the
number is written under a name that we know. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.errors import DecodeError, UnknownKindError
from contracts.pods.kinds import KINDS, find_kind

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
        "AdmissionCheck": "who answers it is not known",
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
    known = [each for each in KINDS if each.group == group and each.versions]
    if not known:
        return
    versions = known[0].versions
    if version not in versions:
        names = " and ".join(f"{group}/{each}".lstrip("/") for each in versions)
        reason = f"{api_version} is not supported; {names} {_verb(versions)}"
        raise DecodeError(name, "apiVersion", reason)
    for each in known:
        if kind != each.kind and kind.lower() == each.kind.lower():
            reason = f"{api_version} has no kind {kind}; did you mean {each.kind}?"
            raise DecodeError(name, "kind", reason)


def is_one_unless_said(raw: Mapping[str, Any]) -> bool:
    """True if a workload has one pod of a role by default."""
    known = find_kind(str(raw.get("apiVersion", "")), str(raw.get("kind")))
    return known is not None and known.is_one_unless_said


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
