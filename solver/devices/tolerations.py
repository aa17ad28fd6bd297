"""Whether a toleration is of a taint: one rule for nodes and for devices.

Source: k8s.io/api/core/v1, Toleration.ToleratesTaint; KEP-5055 does it alike.
"""

from __future__ import annotations

from contracts.claim import DeviceToleration
from contracts.device import DeviceTaint
from contracts.gang import NodeToleration
from contracts.workload import NodeTaint


def is_of(
    toleration: DeviceToleration | NodeToleration, taint: DeviceTaint | NodeTaint
) -> bool:
    """Say whether a toleration is of a taint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
