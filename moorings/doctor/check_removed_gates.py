"""Feature gates that the next release of Kubernetes no longer has. Pure.

A component that is given one does not start, so they must go before the upgrade. They
show only where a control plane runs as Pods.

Source: pkg/features of Kubernetes 1.37.1 and 1.38.0-beta.0, and of the libraries.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorings.doctor.control_plane_flags import read_flags
from moorings.doctor.facts import ClusterFacts, Unread
from moorings.doctor.findings import CheckLine, warn

_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_REMOVED = frozenset(
    (
        "AggregatedDiscoveryRemoveBetaType",
        "AllowOverwriteTerminationGracePeriodSeconds",
        "DisableAllocatorDualWrite",
        "DynamicResourceAllocation",
        "ExecProbeTimeout",
        "InPlacePodVerticalScaling",
        "JobManagedBy",
        "KubeletTracing",
        "MatchLabelKeysInPodAffinity",
        "MultiCIDRServiceAllocator",
        "NFTablesProxyMode",
        "NodeSwap",
        "PodGroupPreemptionPolicy",
        "PodSchedulingReadiness",
        "PreferSameTrafficDistribution",
        "RecoverVolumeExpansionFailure",
        "SeparateTaintEvictionController",
        "ServiceAccountTokenJTI",
        "ServiceAccountTokenNodeBinding",
        "ServiceAccountTokenNodeBindingValidation",
        "ServiceAccountTokenPodNodeInfo",
        "SupplementalGroupsPolicy",
        "WinDSR",
        "WinOverlay",
        "WindowsHostNetwork",
    )
)


def check_removed_gates(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check for gates in the flags of components that 1.38 does not know."""
    if isinstance(facts.control_plane, Unread):
        return
    for component in _COMPONENTS:
        flags = read_flags(facts.control_plane, component)
        given = flags.get("feature-gates", "").split(",")
        removed = sorted({gate.partition("=")[0] for gate in given} & _REMOVED)
        if removed:
            yield warn(
                "kubernetes.removed-gates",
                f"Kubernetes 1.38 has no gate {', '.join(removed)}: {component} will "
                "not start with it",
                "remove it from --feature-gates before the upgrade",
            )
