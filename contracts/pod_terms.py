"""The rules of pods about other pods: ports, terms, spread.

As in Kubernetes' core/v1, decoded leniently; `contracts/pods/pod_rules.py` reads what
they mean. Knows no pod.
"""

from __future__ import annotations

from contracts.labels import LabelSelector
from contracts.structs import Int32, KubernetesStruct

PROTOCOLS = ("TCP", "UDP", "SCTP")
MAX_PORT = 65535


class PodAffinityTerm(KubernetesStruct, frozen=True, kw_only=True):
    """Other pods, and the label of nodes that says who is near to whom."""

    label_selector: LabelSelector | None = None
    """None: no pod."""
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    """None: only `namespaces`, or the pod's own where there are none."""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class TopologySpreadConstraint(KubernetesStruct, frozen=True, kw_only=True):
    """How evenly pods are spread; only `DoNotSchedule` keeps a pod from a node."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class HostPort(KubernetesStruct, frozen=True, kw_only=True):
    """A port of the node that a pod takes for itself."""

    port: Int32
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104  # every address, as kube-scheduler writes it
