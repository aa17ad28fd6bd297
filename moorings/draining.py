"""Draining a node of claims: what keeps new ones away, and which are there still. Pure.

A node is drained by DeviceTaintRules with the effect NoSchedule on its pools, or on one
device: they hold for Moorings and for kube-scheduler, for our devices and for those of
other drivers, and nobody is evicted. Reads objects as the API server serves them.

Source: KEP-5055 (device taints), KEP-4381 (allocation and reservation).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from msgspec import Struct

from contracts.names import DRAINING

Json = Mapping[str, Any]


class DrainMark(Struct, frozen=True, order=True):
    """Devices that get nothing new: a pool of a node, or one device of it."""

    driver: str
    pool: str
    device: str = ""
    """Empty: all of the pool."""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.driver, self.pool, self.device)))

    def covers(self, result: Json) -> bool:
        """True if an allocated device is one of the marked ones."""
        place = (result.get("driver"), result.get("pool"))
        own = (self.driver, self.pool)
        return place == own and self.device in ("", result.get("device"))


class DrainedClaim(Struct, frozen=True, kw_only=True):
    """A claim that holds devices that are to be free."""

    claim: str
    """Its `namespace/name`."""
    devices: tuple[str, ...]
    """Each `driver/pool/device`."""
    users: tuple[str, ...] = ()
    """Pods for which it is reserved, by name; none: it is allocated only."""

    def __str__(self) -> str:
        users = f" (used by {', '.join(self.users)})" if self.users else ""
        return f"{self.claim}{users}"


def find_marks(slices: Iterable[Json], node: str, device: str) -> set[DrainMark]:
    """Find what is to be marked: all pools of a node, or the devices of a name.

    `device` is `NAME`, `POOL/NAME` or `DRIVER/POOL/NAME`; empty: all.
    """
    marks = set()
    for item in slices:
        spec = item["spec"]
        if spec.get("nodeName") != node:
            continue
        driver, pool = spec["driver"], spec["pool"]["name"]
        if not device:
            marks.add(DrainMark(driver, pool))
            continue
        for entry in spec.get("devices") or ():
            name = entry["name"]
            if device in (name, f"{pool}/{name}", f"{driver}/{pool}/{name}"):
                marks.add(DrainMark(driver, pool, name))
    return marks


def list_device_names(slices: Iterable[Json], node: str) -> list[str]:
    """List the names of all devices of a node."""
    return sorted(
        {
            str(entry["name"])
            for item in slices
            if item["spec"].get("nodeName") == node
            for entry in item["spec"].get("devices") or ()
        }
    )


def make_rule(mark: DrainMark, node: str, api_version: str) -> dict[str, Any]:
    """Make the DeviceTaintRule that keeps new claims away; its name follows from it."""
    key = f"{node}\0{mark.driver}\0{mark.pool}\0{mark.device}"
    selector = {"driver": mark.driver, "pool": mark.pool}
    if mark.device:
        selector["device"] = mark.device
    return {
        "apiVersion": api_version,
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": f"moorings-draining-{sha256(key.encode()).hexdigest()[:16]}",
            "annotations": {DRAINING: node},
        },
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": DRAINING, "effect": "NoSchedule"},
        },
    }


def read_marks(rules: Iterable[Json], node: str) -> dict[DrainMark, str]:
    """Return the marks of a node that are there, with the names of their rules."""
    marks = {}
    for rule in rules:
        spec, meta = rule["spec"], rule["metadata"]
        noted = (meta.get("annotations") or {}).get(DRAINING)
        selector = spec.get("deviceSelector") or {}
        if noted == node and (spec.get("taint") or {}).get("key") == DRAINING:
            mark = DrainMark(
                selector.get("driver", ""),
                selector.get("pool", ""),
                selector.get("device", ""),
            )
            marks[mark] = str(meta["name"])
    return marks


def choose_marks(marks: Mapping[DrainMark, str], device: str) -> dict[DrainMark, str]:
    """Choose the marks of one device, named as for `find_marks`; empty: all."""

    def is_meant(mark: DrainMark) -> bool:
        parts = (mark.device, f"{mark.pool}/{mark.device}", str(mark))
        return not device or (bool(mark.device) and device in parts)

    return {mark: name for mark, name in marks.items() if is_meant(mark)}


def list_holders(
    claims: Iterable[Json], marks: Collection[DrainMark]
) -> list[DrainedClaim]:
    """List the claims that hold marked devices, by namespace and name."""
    held = (_read_holder(claim, marks) for claim in claims)
    return sorted(filter(None, held), key=lambda holder: holder.claim)


def _read_holder(claim: Json, marks: Collection[DrainMark]) -> DrainedClaim | None:
    status, meta = claim.get("status") or {}, claim["metadata"]
    devices = tuple(_list_held(status.get("allocation") or {}, marks))
    if not devices:
        return None
    return DrainedClaim(
        claim=f"{meta['namespace']}/{meta['name']}",
        devices=devices,
        users=tuple(user["name"] for user in status.get("reservedFor") or ()),
    )


def _list_held(allocation: Json, marks: Collection[DrainMark]) -> Iterator[str]:
    for result in (allocation.get("devices") or {}).get("results") or ():
        if any(mark.covers(result) for mark in marks):
            yield f"{result['driver']}/{result['pool']}/{result['device']}"
