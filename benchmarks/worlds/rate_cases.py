"""Clusters of 10 devices a node and as many claims as half of them: three scenarios.

plain: one device. pairs: two devices of one PCIe root. parts: an eighth of one of two
partitionable cards a node. In the form of upstream's oracle, so that both sides read
the same objects.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
DRIVER, CLASS = "gpu.example.com", "gpu.example.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
DEVICES = 10
CARDS = 2
PARTS = DEVICES // CARDS
"""Devices of a card: the whole of it, and its parts."""
CLAIMS = DEVICES // 2
"""Claims for each node: pairs use up all devices, parts 5 of 8."""
SCENARIOS = ("plain", "pairs", "parts")
FEATURES = {
    "AdminAccess": True,
    "ConsumableCapacity": True,
    "DeviceBindingAndStatus": True,
    "DeviceTaints": True,
    "PartitionableDevices": True,
    "PrioritizedList": True,
}


def case(scenario: str, nodes: int) -> Json:
    """Make the case of a scenario."""
    names = [f"node-{index:04}" for index in range(nodes)]
    cel = {"expression": f'device.driver == "{DRIVER}"'}
    device_class = {"metadata": {"name": CLASS}, "spec": {"selectors": [{"cel": cel}]}}
    return {
        "nodes": [{"metadata": {"name": name}} for name in names],
        "claims": [_claim(scenario, index) for index in range(nodes * CLAIMS)],
        "classes": [device_class],
        "slices": [entry for name in names for entry in _slices(scenario, name)],
        "features": FEATURES,
    }


def _claim(scenario: str, index: int) -> Json:
    exactly: Json = {
        "deviceClassName": CLASS,
        "allocationMode": "ExactCount",
        "count": 2 if scenario == "pairs" else 1,
    }
    if scenario == "parts":
        cel = f'device.attributes["{DRIVER}"].profile == "part"'
        exactly["selectors"] = [{"cel": {"expression": cel}}]
    devices: Json = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if scenario == "pairs":
        devices["constraints"] = [{"matchAttribute": PCIE_ROOT}]
    name = f"claim-{index:05}"
    return {
        "metadata": {"name": name, "namespace": "bench"},
        "spec": {"devices": devices},
    }


def _slices(scenario: str, node: str) -> list[Json]:
    """Publish a node's pool; counters lie in a slice of their own."""
    counted = scenario == "parts"
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1 + counted}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool}
    devices = [_device(scenario, node, index) for index in range(DEVICES)]
    slices = [_slice(f"{node}-devices", spec, devices=devices)]
    if counted:
        sets = [
            {"name": f"card-{card}", "counters": {"eighths": {"value": "8"}}}
            for card in range(CARDS)
        ]
        slices.append(_slice(f"{node}-counters", spec, sharedCounters=sets))
    return slices


def _slice(name: str, spec: Json, **more: Json | list[Json]) -> Json:
    return {"metadata": {"name": name}, "spec": {**spec, **more}}


def _device(scenario: str, node: str, index: int) -> Json:
    attributes = {
        "model": {"string": "H100"},
        "uuid": {"string": f"GPU-{node}-{index}"},
        PCIE_ROOT: {"string": f"pci-{node}-{index // 2}"},
    }
    device: Json = {
        "name": f"gpu-{index}",
        "attributes": attributes,
        "capacity": {"memory": {"value": "80Gi"}},
    }
    if scenario == "parts":
        whole = index % PARTS == 0
        attributes["profile"] = {"string": "whole" if whole else "part"}
        counters = {"eighths": {"value": "8" if whole else "2"}}
        draws = {"counterSet": f"card-{index // PARTS}", "counters": counters}
        device["consumesCounters"] = [draws]
    return device
