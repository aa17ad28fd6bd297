"""Hard cases for a search that goes depth first: small, and with no solution.

Six families by the number n of equal devices on one node, in the form of the oracle.
Sources: kubernetes/kubernetes#131730, #138765; tests of upstream's allocator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
DRIVER, CLASS = "gpu.example.com", "gpu.example.com"
NUMA, ROOT = f"{DRIVER}/numa", f"{DRIVER}/root"
FEATURES = {
    "AdminAccess": True,
    "ConsumableCapacity": True,
    "DeviceBindingAndStatus": True,
    "DeviceTaints": True,
    "FractionalCapacityRange": True,
    "PartitionableDevices": True,
    "PrioritizedList": True,
}
SIZES = (8, 12, 16, 20, 24, 28, 32)


def one_request(n: int) -> Json:
    """F1: one request for one device more than there is."""
    return _case(_equal(n), [_claim(_request("a", n + 1))])


def one_request_matching(n: int) -> Json:
    """F2: one request for more than half, which must be of one of two NUMA nodes."""
    claim = _claim(_request("a", n // 2 + 1), match=NUMA)
    return _case(_by_numa(n), [claim])


def many_requests_matching(n: int) -> Json:
    """F3: as many requests for one device each, all of one NUMA node."""
    requests = [_request(f"r{i}", 1) for i in range(n // 2 + 1)]
    return _case(_by_numa(n), [_claim(*requests, match=NUMA)])


def four_requests_matching(n: int) -> Json:
    """F4: four requests that need more than half together."""
    count = n // 8 + 1
    requests = [_request(f"r{i}", count) for i in range(4)]
    return _case(_by_numa(n), [_claim(*requests, match=NUMA)])


def gpus_and_nic(n: int) -> Json:
    """F5: GPUs and a NIC on one PCIe root, where no root has a NIC and enough GPUs."""
    gpus = [_device(f"gpu-{i}", kind="gpu", root=f"pci{i % 2}") for i in range(n)]
    nics = [_device(f"nic-{i}", kind="nic", root=f"pci{4 + i}") for i in range(4)]
    kind = f'device.attributes["{DRIVER}"].kind'
    claim = _claim(
        _request("gpu", n // 4, f'{kind} == "gpu"'),
        _request("nic", 1, f'{kind} == "nic"'),
        match=ROOT,
    )
    return _case([*gpus, *nics], [claim])


def two_claims(n: int) -> Json:
    """F6: two claims that fit in many ways, and a request that never does."""
    never = _request("never", 1, f'device.attributes["{DRIVER}"].kind == "none"')
    last = _claim(_request("b", n // 4), never, name="two")
    return _case(_equal(n), [_claim(_request("a", n // 4)), last])


FAMILIES: dict[str, Callable[[int], Json]] = {
    "F1 one request": one_request,
    "F2 one request, match": one_request_matching,
    "F3 many requests, match": many_requests_matching,
    "F4 four requests, match": four_requests_matching,
    "F5 GPUs and NIC, match": gpus_and_nic,
    "F6 two claims": two_claims,
}


def _equal(n: int) -> list[Json]:
    return [_device(f"gpu-{i}", kind="gpu") for i in range(n)]


def _by_numa(n: int) -> list[Json]:
    return [_device(f"gpu-{i}", numa=i % 2) for i in range(n)]


def _device(name: str, **attributes: str | int) -> Json:
    values = {
        key: {"int": value} if isinstance(value, int) else {"string": value}
        for key, value in attributes.items()
    }
    return {"name": name, "attributes": values}


def _request(name: str, count: int, *selectors: str) -> Json:
    exactly: Json = {
        "deviceClassName": CLASS,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": expression}} for expression in selectors],
    }
    return {"name": name, "exactly": exactly}


def _claim(*requests: Json, match: str = "", name: str = "one") -> Json:
    devices: Json = {"requests": list(requests)}
    if match:
        devices["constraints"] = [{"matchAttribute": match}]
    return {"metadata": {"name": name}, "spec": {"devices": devices}}


def _case(devices: list[Json], claims: list[Json]) -> Json:
    spec: Json = {
        "driver": DRIVER,
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    cel = {"expression": f'device.driver == "{DRIVER}"'}
    device_class = {"metadata": {"name": CLASS}, "spec": {"selectors": [{"cel": cel}]}}
    return {
        "id": "family",
        "node": {"metadata": {"name": "node-1"}},
        "claims": claims,
        "classes": [device_class],
        "slices": [{"metadata": {"name": "slice-1"}, "spec": spec}],
        "features": FEATURES,
    }
