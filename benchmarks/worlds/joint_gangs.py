"""Gangs of two pods that fit, but only where both are decided together.

Each family is one site of nodes and devices, and pods that all have a place there as
long as the first does not take what only the second can use. Sources:
kubernetes/kubernetes#138765 and kubernetes/enhancements#4970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json

DRIVER = "together.example.com"
SITE = "together.example.com/site"
"""Label of the nodes of a site."""
NUMA = f"{DRIVER}/numa"


class Site(Struct, frozen=True, kw_only=True):
    """Nodes with devices, and what each pod of the gang asks for."""

    slices: Sequence[Json]
    """Specs of ResourceSlices, each with its `nodeName`."""
    claims: Sequence[Json]
    """Specs of claims, one a pod, in the order in which pods are created."""

    @property
    def nodes(self) -> list[str]:
        """Name the nodes."""
        return sorted({slice_spec["nodeName"] for slice_spec in self.slices})


def whole_or_halves(site: str) -> Site:
    """A device that is one whole or two halves; both pods would take either.

    The first takes the whole (kubernetes/kubernetes#138765).
    """
    parts = [
        _device("whole", part="whole", uses=2),
        _device("half-0", part="half", uses=1),
        _device("half-1", part="half", uses=1),
    ]
    return Site(
        slices=_partitioned(f"{site}-a", parts, total=2),
        claims=[_first_of("whole", "half")] * 2,
    )


def whole_or_quarters(site: str) -> Site:
    """A device that is a whole, two halves or four quarters; four pods take any."""
    kinds = {"whole": (1, 4), "half": (2, 2), "quarter": (4, 1)}
    parts = [
        _device(f"{part}-{number}", part=part, uses=uses)
        for part, (count, uses) in kinds.items()
        for number in range(count)
    ]
    return Site(
        slices=_partitioned(f"{site}-a", parts, total=4),
        claims=[_first_of(*kinds)] * 4,
    )


def large_or_small(site: str) -> Site:
    """A large and a small device; the first pod takes the large, the second needs it.

    Devices are taken in their order (kubernetes/enhancements#4970).
    """
    devices = [_device("d-0", memory=80), _device("d-1", memory=40)]
    large = f'device.attributes["{DRIVER}"].memory >= 80'
    return Site(
        slices=[_slice(f"{site}-a", devices)],
        claims=[_exactly(1), _exactly(1, selectors=_cel(large))],
    )


def one_numa_node(site: str) -> Site:
    """Two devices on one NUMA node, one on another; the second pod needs the pair."""
    devices = [_device(f"d-{number}", numa=number // 2) for number in range(3)]
    pair = _exactly(2)
    pair["devices"]["constraints"] = [{"matchAttribute": NUMA}]
    return Site(slices=[_slice(f"{site}-a", devices)], claims=[_exactly(1), pair])


def two_nodes(site: str) -> Site:
    """A node of two devices and one of one; the second pod needs the node of two."""
    return Site(
        slices=[
            _slice(f"{site}-{name}", [_device(f"d-{i}") for i in range(count)])
            for name, count in (("a", 2), ("b", 1))
        ],
        claims=[_exactly(1), _exactly(2)],
    )


FAMILIES: Mapping[str, Callable[[str], Site]] = {
    "whole or halves": whole_or_halves,
    "whole or quarters": whole_or_quarters,
    "large or small": large_or_small,
    "one NUMA node": one_numa_node,
    "two nodes": two_nodes,
}


def _device(name: str, *, uses: int = 0, **attributes: str | int) -> Json:
    device: Json = {
        "name": name,
        "attributes": {
            key: {"int": value} if isinstance(value, int) else {"string": value}
            for key, value in attributes.items()
        },
    }
    if uses:
        counters = {"parts": {"value": str(uses)}}
        device["consumesCounters"] = [{"counterSet": "device", "counters": counters}]
    return device


def _slice(node: str, devices: Sequence[Json], count: int = 1) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    return {
        "driver": DRIVER,
        "nodeName": node,
        "pool": pool,
        "devices": list(devices),
    }


def _partitioned(node: str, devices: Sequence[Json], total: int) -> list[Json]:
    """Counters stand in a slice of their own."""
    counters = {"parts": {"value": str(total)}}
    shared = _slice(node, (), 2)
    del shared["devices"]
    shared["sharedCounters"] = [{"name": "device", "counters": counters}]
    return [shared, _slice(node, devices, 2)]


def _exactly(count: int, **more: Any) -> Json:
    return objects.requests(DRIVER, count, **more)


def _first_of(*parts: str) -> Json:
    alternatives = [
        {
            "name": part,
            "deviceClassName": DRIVER,
            "selectors": _cel(f'device.attributes["{DRIVER}"].part == "{part}"'),
        }
        for part in parts
    ]
    return {"devices": {"requests": [{"name": "r", "firstAvailable": alternatives}]}}


def _cel(expression: str) -> list[Json]:
    return [{"cel": {"expression": expression}}]
