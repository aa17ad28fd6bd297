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
from contracts.device import Device, DeviceTaint
from contracts.ids import DeviceClassName, DeviceName, DriverName, NodeName, PoolName

PAGES = 256
"""How many pages a cluster has; a node's page follows from its name alone."""


class PoolPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Pool"
):
    """A pool as the allocator may use it."""

    driver: DriverName
    pool: PoolName
    node: NodeName = NodeName("")
    """The node that the pool is local to; empty when it is not local to one."""
    generation: int = 0
    devices: tuple[Device, ...] = ()
    """In the order that kube-scheduler would look at them."""
    incomplete: bool = False
    invalid: str = ""
    """Why the pool must not be used; empty when it may."""
    not_modelled: str = ""
    """The field that this version cannot decide with; empty when there is none."""


class UsePart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Use"
):
    """What is not free in a pool, and the taints that its slices do not have."""

    driver: DriverName
    pool: PoolName
    node: NodeName = NodeName("")
    taken: tuple[DeviceName, ...] = ()
    """Sorted."""
    taints: tuple[tuple[DeviceName, DeviceTaint], ...] = ()
    """From health and DeviceTaintRules, sorted by device."""


class NodePart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Node"
):
    """A node, and whether anything may be placed on it."""

    name: NodeName
    labels: dict[str, str] = {}
    unavailable: str = ""
    """Why nothing may be placed here (`away`, `not ready`); empty: usable."""


class ClassPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="Class"
):
    """A DeviceClass: the selectors of its devices and their configuration."""

    name: DeviceClassName
    selectors: tuple[str, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


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
