"""Which features of a kubelet a pod needs, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.kubernetes.decode import decode_object
from contracts.pods.node_features import (
    BIND_OPTIONS,
    HOST_USERS,
    KUBELET_FEATURES,
    ML_DSA,
    OCI_PROFILE,
    RESTART_ALL,
    list_needed_features,
)
from contracts.workload import Pod

OCI = {"seccompProfile": {"type": "OCI"}}
RULES = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
OPTIONS = {"volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}
NEEDED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ()),
    ({"hostNetwork": True}, ()),
    ({"hostNetwork": True, "hostUsers": True}, ()),
    ({"hostNetwork": True, "hostUsers": False}, (HOST_USERS,)),
    ({"hostUsers": False}, ()),
    ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, ()),
    ({"containers": [RULES]}, (RESTART_ALL,)),
    ({"initContainers": [RULES]}, (RESTART_ALL,)),
    ({"containers": [{"volumeMounts": [{"name": "v"}]}]}, ()),
    ({"initContainers": [OPTIONS], "containers": [OPTIONS]}, (BIND_OPTIONS,)),
    ({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}, ()),
    ({"securityContext": OCI}, (OCI_PROFILE,)),
    ({"containers": [{"securityContext": OCI} | RULES]}, (RESTART_ALL, OCI_PROFILE)),
    *(
        (
            {
                "volumes": [
                    {"projected": {"sources": [{"podCertificate": {"keyType": key}}]}}
                ]
            },
            (ML_DSA,) if key.startswith("MLDSA") else (),
        )
        for key in ("MLDSA44", "MLDSA87", "ED25519")
    ),
]


@pytest.mark.parametrize(("spec", "features"), NEEDED, ids=range(len(NEEDED)))
def test_what_a_pod_says_tells_what_its_kubelet_must_declare(
    spec: dict[str, Any], features: tuple[str, ...]
) -> None:
    """As kube-scheduler infers it; each feature once, in order."""
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    pod = decode_object(raw).value
    assert isinstance(pod, Pod)
    assert list_needed_features(pod.spec) == tuple(sorted(features))


def test_every_feature_is_inferred() -> None:
    """None is listed that no pod needs."""
    assert {each for _, found in NEEDED for each in found} == KUBELET_FEATURES
