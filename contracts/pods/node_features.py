"""The features of its node's kubelet that a pod needs, as kube-scheduler infers them.

A node without them in `status.declaredFeatures` is filtered out by the plugin
NodeDeclaredFeatures, which is on since Kubernetes 1.36. Only what a pod needs to be
scheduled counts, not what later updates of it would need.

Source: KEP-5328; k8s.io/component-helpers/nodedeclaredfeatures/features.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from contracts.workload import Container, PodSpec

HOST_USERS = "UserNamespacesHostNetworkSupport"
RESTART_ALL = "RestartAllContainersOnContainerExits"
BIND_OPTIONS = "VolumeBindMountOptions"
ML_DSA = "PodCertificateMLDSA"
OCI_PROFILE = "SecurityProfileOCI"
KUBELET_FEATURES = frozenset(
    {HOST_USERS, RESTART_ALL, BIND_OPTIONS, ML_DSA, OCI_PROFILE}
)
_ML_DSA_KEYS = ("MLDSA44", "MLDSA65", "MLDSA87")


def list_needed_features(spec: PodSpec) -> tuple[str, ...]:
    """List the features that a pod needs; sorted."""
    return tuple(sorted(set(_find_needed(spec))))


def _find_needed(spec: PodSpec) -> Iterator[str]:
    if spec.host_network and spec.host_users is False:
        yield HOST_USERS
    if _is_oci(spec.security_context):
        yield OCI_PROFILE
    for container in chain(spec.containers, spec.init_containers):
        yield from _find_needed_by(container)
    for volume in spec.volumes:
        for source in volume.projected.sources:
            if (source.get("podCertificate") or {}).get("keyType") in _ML_DSA_KEYS:
                yield ML_DSA


def _find_needed_by(container: Container) -> Iterator[str]:
    rules, mounts = container.restart_policy_rules, container.volume_mounts
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        yield RESTART_ALL
    if any(mount.get("bindMountOptions") for mount in mounts):
        yield BIND_OPTIONS
    if _is_oci(container.security_context):
        yield OCI_PROFILE


def _is_oci(security_context: dict[str, object]) -> bool:
    profile = security_context.get("seccompProfile")
    return isinstance(profile, dict) and profile.get("type") == "OCI"
