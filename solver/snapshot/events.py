"""Events: changes of a cluster that can turn a no into a yes.

A change names what grew, and a gang what it needs; the queue tries again those gangs
whose needs grew. The idea, and the name, are kube-scheduler's (ClusterEvent, KEP-4247).
"""

from __future__ import annotations

from typing import NewType

ClusterEvent = NewType("ClusterEvent", str)
"""Something that grew, such as `driver/gpu.example.com`."""
ANYTHING = ClusterEvent("*")
"""Every gang may profit."""
NODE_EVENT = ClusterEvent("nodes")
"""A node has more left, or other labels or taints."""
POD_EVENT = ClusterEvent("pods")
"""Pods came, went or changed where others look at them."""
EXTENDED_RESOURCES = ClusterEvent("extended-resources")
"""Devices that some class may offer as an extended resource (KEP-5004)."""


def driver_event(driver: str) -> ClusterEvent:
    """Name the event that devices of a driver are new, free or healthy again."""
    return ClusterEvent(f"driver/{driver}")


def class_event(name: str) -> ClusterEvent:
    """Name the event that a DeviceClass changed, or devices grew that it may choose."""
    return ClusterEvent(f"class/{name}")


def template_event(key: str) -> ClusterEvent:
    """Name the event that a ResourceClaimTemplate (`namespace/name`) changed."""
    return ClusterEvent(f"template/{key}")


def claim_event(key: str) -> ClusterEvent:
    """Name the event that a ResourceClaim (`namespace/name`) is new or changed."""
    return ClusterEvent(f"claim/{key}")


def quota_event(name: str) -> ClusterEvent:
    """Name the event that more is left of the quotas of queues that share them."""
    return ClusterEvent(f"quota/{name}")
