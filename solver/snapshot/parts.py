"""The facts of a cluster in pages, each hashed once, so that a change costs a page.

A part is one pool, what is used of a pool, one node, one class. Parts lie in pages by
the node that they belong to; a page's hash covers its parts. Snapshot changes pages,
Problem is a list of pages, the recorder stores pages, the worker process receives
them: all four only ever touch what changed. Knows nothing of gangs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

from msgspec import Raw, Struct

from contracts.claim import DeviceConfiguration
from contracts.codec import Codec
from contracts.device import CounterSet, Device, DeviceTaint, NodeSelector
from contracts.ids import DeviceClassName, DeviceName, DriverName, NodeName, PoolName
from contracts.quantity import Quantity

PAGES = 256
"""How many pages a cluster has; a node's page follows from its name alone."""


class PoolSlice(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What decides about devices in one ResourceSlice of a pool."""

    name: str
    generation: int = 0
    slice_count: int = 0
    """Slices that this generation of the pool has, as the driver says."""
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] | None = None


class PoolPart(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    tag="Pool",
    dict=True,
):
    """All slices of a pool, of every generation; what a node makes of them differs."""

    driver: DriverName
    pool: PoolName
    node: NodeName = NodeName("")
    """The node that every slice names; empty when they are not local to one."""
    slices: tuple[PoolSlice, ...] = ()
    """By name: kube-scheduler's order."""
    contested: str = ""
    """Why nobody may use the pool; empty: it may be used."""

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The devices of all slices; bit i of a set of devices is the i-th of them."""
        return tuple(device for item in self.slices for device in item.devices)

    @cached_property
    def has_unique_names(self) -> bool:
        """Whether no two devices have one name, in whatever slice or generation."""
        return len({device.name for device in self.devices}) == len(self.devices)


class ShareUse(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the shares of one device consume together (KEP-5075)."""

    device: DeviceName
    consumed: tuple[tuple[str, Quantity], ...] = ()
    """By capacity name, sorted."""


class UsePart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Use"
):
    """What is not free in a pool, and the taints that its slices do not have."""

    driver: DriverName
    pool: PoolName
    node: NodeName = NodeName("")
    taken: tuple[DeviceName, ...] = ()
    """Held by one claim for itself; sorted."""
    shared: tuple[ShareUse, ...] = ()
    """Held in shares; by device."""
    taints: tuple[tuple[DeviceName, DeviceTaint], ...] = ()
    """From health and DeviceTaintRules, sorted by device."""


class NodePart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Node"
):
    """A node, and whether anything may be placed on it."""

    name: NodeName
    labels: dict[str, str] = {}
    declared_features: tuple[str, ...] = ()
    """Of `status.declaredFeatures`, those of DRA."""
    plugin_resources: tuple[str, ...] = ()
    """Extended resources that the node itself offers (device plugins); sorted."""
    unavailable: str = ""
    """Why nothing may be placed here (`away`, `not ready`); empty: usable."""


class ClassPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Class"
):
    """A DeviceClass: the selectors of its devices and their configuration."""

    name: DeviceClassName
    selectors: tuple[str, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str = ""
    created: str = ""
    """`metadata.creationTimestamp`: of two classes for one resource the later wins."""


PartValue = PoolPart | UsePart | NodePart | ClassPart
_PART: Codec[PartValue] = Codec(PartValue, "part")
_PAGE: Codec[list[Raw]] = Codec(list[Raw], "page")


class Part:
    """One fact: its value and its canonical bytes, made when asked for.

    `memo` keeps pure results derived from it, as that of a page does.
    """

    def __init__(self, value: PartValue, data: bytes | None = None) -> None:
        self.value = value
        self.memo: dict[Any, Any] = {}
        self.key = _key_of(value)
        if data is not None:
            self.data = data

    @classmethod
    def decode(cls, data: bytes) -> Part:
        """Read a part back.

        Raises:
            DecodeError: the bytes are no part.
        """
        return cls(_PART.decode(data), data)

    @cached_property
    def data(self) -> bytes:
        """Canonical bytes."""
        return _PART.encode(self.value)


class Page:
    """The parts of a few nodes, frozen; `memo` keeps pure results derived from it."""

    def __init__(self, parts: Mapping[str, Part], data: bytes | None = None) -> None:
        self.parts = parts
        self.memo: dict[Any, Any] = {}
        if data is not None:
            self.data = data

    @classmethod
    def decode(cls, data: bytes, known: Mapping[bytes, Part]) -> Page:
        """Read a page back; parts whose bytes are in `known` are not read again.

        Raises:
            DecodeError: the bytes are no page.
        """
        found = (bytes(raw) for raw in _PAGE.decode(data))
        parts = [known.get(raw) or Part.decode(raw) for raw in found]
        return cls({part.key: part for part in parts}, data)

    @cached_property
    def data(self) -> bytes:
        """Canonical bytes: the parts in the order of their keys."""
        parts = (self.parts[key].data for key in sorted(self.parts))
        return b"[" + b",".join(parts) + b"]"

    @cached_property
    def sha(self) -> str:
        """Hash of the bytes, in hex."""
        return sha256(self.data).hexdigest()

    def with_part(self, part: Part) -> Page:
        """Put a part in the place of the one with its key."""
        return Page({**self.parts, part.key: part})

    def without(self, key: str) -> Page:
        """Leave a part out."""
        return Page({name: part for name, part in self.parts.items() if name != key})


_EMPTY = Page({})


class Pages:
    """All parts of a cluster: a frozen map from page number to page."""

    def __init__(self, pages: tuple[Page, ...] = (_EMPTY,) * PAGES) -> None:
        self._pages = pages

    def __iter__(self) -> Iterator[Page]:
        """Go through the pages that hold anything, in their order."""
        return (page for page in self._pages if page.parts)

    def values(self) -> Iterator[PartValue]:
        """Go through all values, page by page."""
        return (part.value for page in self for part in page.parts.values())

    def get(self, owner: str, key: str) -> PartValue | None:
        """Look up a part's value by its owner (node, or "") and key."""
        part = self._pages[page_number(owner)].parts.get(key)
        return None if part is None else part.value

    def with_value(self, value: PartValue) -> Pages:
        """Put a value in the place of the one with its key; itself when equal."""
        number = page_number(_owner_of(value))
        page = self._pages[number]
        part = Part(value)
        known = page.parts.get(part.key)
        if known is not None and known.value == value:
            return self
        return self._with_page(number, page.with_part(part))

    def without(self, owner: str, key: str) -> Pages:
        """Leave a part out; itself when there is none."""
        number = page_number(owner)
        page = self._pages[number]
        if key not in page.parts:
            return self
        return self._with_page(number, page.without(key))

    def _with_page(self, number: int, page: Page) -> Pages:
        pages = self._pages
        return Pages((*pages[:number], page, *pages[number + 1 :]))


def page_number(owner: str) -> int:
    """Say which page holds the parts of a node (or, for "", of the cluster)."""
    return zlib.crc32(owner.encode()) % PAGES


def pool_key(driver: DriverName, pool: PoolName) -> str:
    """Name a pool's part."""
    return f"pool/{driver}/{pool}"


def use_key(driver: DriverName, pool: PoolName) -> str:
    """Name the part that says what is used of a pool."""
    return f"use/{driver}/{pool}"


def node_key(name: NodeName) -> str:
    """Name a node's part."""
    return f"node/{name}"


def class_key(name: DeviceClassName) -> str:
    """Name a class's part."""
    return f"class/{name}"


def _key_of(value: PartValue) -> str:
    match value:
        case PoolPart():
            return pool_key(value.driver, value.pool)
        case UsePart():
            return use_key(value.driver, value.pool)
        case NodePart():
            return node_key(value.name)
        case ClassPart():
            return class_key(value.name)


def _owner_of(value: PartValue) -> str:
    match value:
        case PoolPart() | UsePart():
            return value.node
        case NodePart():
            return value.name
        case ClassPart():
            return ""
