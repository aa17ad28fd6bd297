"""Pods that are on nodes or will be, as other pods' rules see them.

Of decided gangs and of pods that run; what they use of nodes and devices is counted
elsewhere. Pure.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.errors import DecodeError
from contracts.gang import Member
from contracts.ids import Namespace
from contracts.pod_terms import HostPort
from contracts.pods.pod_rules import (
    PodTerm,
    list_host_ports,
    read_apart,
    read_host_ports,
)
from contracts.workload import Pod

HOSTNAME = "kubernetes.io/hostname"
_FROM_EVERYBODY = PodTerm(topology_key=HOSTNAME, selector=(), namespace_selector=())
"""Taken for an anti-affinity that cannot be read: it keeps all pods off its node."""


class RunningPod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Equal pods on a node, as others' rules see them."""

    namespace: Namespace
    labels: dict[str, str] = {}
    varying: tuple[str, ...] = ()
    """Keys of labels whose values are not known."""
    count: int = 1
    ports: tuple[HostPort, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    """The pods that they keep away."""
    terminating: bool = False
    """Topology spread does not count it."""


def running_of_pod(pod: Pod) -> RunningPod:
    """Read a pod that is on a node."""
    metadata, spec = pod.metadata, pod.spec
    namespace = Namespace(metadata.namespace)
    try:
        apart = read_apart(namespace, metadata.labels, spec.affinity)
    except DecodeError:
        apart = (_FROM_EVERYBODY,)
    return RunningPod(
        namespace=namespace,
        labels=metadata.labels,
        ports=list_host_ports(spec),
        apart=apart,
        terminating=metadata.deletion_timestamp is not None,
    )


def running_of_member(namespace: str, member: Member, count: int) -> RunningPod:
    """Read pods of a gang that has its devices."""
    node = member.node
    try:
        apart = read_apart(namespace, node.labels, node.affinity)
    except DecodeError:
        apart = (_FROM_EVERYBODY,)
    return RunningPod(
        namespace=Namespace(namespace),
        labels=node.labels,
        varying=node.varying_labels,
        count=count,
        ports=read_host_ports(node.host_ports),
        apart=apart,
    )
