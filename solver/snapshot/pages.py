"""The parts of a cluster in pages, each hashed once, so that a change costs a page.

Parts lie in pages by the node that they belong to; a page's hash covers its parts.
Snapshot changes pages, Problem is a list of pages, the recorder stores pages, the
worker process receives them: all four only ever touch what changed. Inside a page the
parts of each node lie together, so that a result about a node outlives a change of
its neighbours.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from operator import attrgetter

from msgspec import Raw

from contracts.codec import Codec, encode
from solver.cache import Memory
from solver.snapshot.parts import Part, PartValue

PAGES = 256
"""How many pages a cluster has; a node's page follows from its name alone."""

_PAGE: Codec[list[Raw]] = Codec(list[Raw], "page")


class NodeParts:
    """The parts of one node, or (owner "") of the cluster as a whole, frozen.

    `memory`: what is remembered of them.
    """

    __slots__ = ("memory", "owner", "parts")

    def __init__(self, owner: str, parts: Mapping[str, Part]) -> None:
        self.owner = owner
        self.parts = parts
        """By key."""
        self.memory = Memory()

    def without(self, key: str) -> NodeParts:
        """Leave a part out."""
        kept = {name: part for name, part in self.parts.items() if name != key}
        return NodeParts(self.owner, kept)

    def is_same(self, parts: Mapping[str, Part]) -> bool:
        """True if these are the very same parts."""
        return self.parts.keys() == parts.keys() and all(
            self.parts[key] is part for key, part in parts.items()
        )


class Page:
    """The parts of a few nodes, frozen; `memory`: what is remembered of it."""

    def __init__(self, nodes: Mapping[str, NodeParts], sha: str = "") -> None:
        self.nodes = nodes
        """By owner."""
        self.memory = Memory()
        if sha:
            self.sha = sha

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Page:
        """Put parts together."""
        return cls(_group_by_owner(parts, {}))

    @classmethod
    def decode(
        cls, data: bytes, parts: Mapping[bytes, Part], nodes: Mapping[str, NodeParts]
    ) -> Page:
        """Read a page back; what is known already is not read again.

        `parts` by their bytes, `nodes` by owner: taken where they are the same.

        Raises:
            DecodeError: the bytes are no page.
        """
        raws = (bytes(raw) for raw in _PAGE.decode(data))
        page_parts = (parts.get(raw) or Part.decode(raw) for raw in raws)
        return cls(_group_by_owner(page_parts, nodes), sha256(data).hexdigest())

    def parts(self) -> Iterator[Part]:
        """Yield all parts, node by node."""
        return (part for node in self.nodes.values() for part in node.parts.values())

    def values_of(self, owner: str) -> Iterator[PartValue]:
        """Yield the values of a node (or, for "", of the cluster)."""
        node = self.nodes.get(owner)
        return (part.value for part in (node.parts.values() if node else ()))

    @property
    def data(self) -> bytes:
        """Canonical bytes: the parts in the order of their keys.

        Put together anew each time: each part keeps its own, and twice is too much for
        a large cluster.
        """
        return b"[" + b",".join([part.data for part in self._sort_parts()]) + b"]"

    @cached_property
    def sha(self) -> str:
        """Hash of the bytes, in hex; they are not kept for it.

        What is only asked once would else hold a large cluster twice.
        """
        # One call writes all parts, those that have no bytes yet from their values.
        parts = [part.written or part.value for part in self._sort_parts()]
        return sha256(encode(parts)).hexdigest()

    def _sort_parts(self) -> list[Part]:
        return sorted(self.parts(), key=attrgetter("key"))

    def get(self, owner: str, key: str) -> Part | None:
        """Look up a part by its owner and key."""
        node = self.nodes.get(owner)
        return None if node is None else node.parts.get(key)

    def with_part(self, part: Part) -> Page:
        """Put a part in the place of the one with its key."""
        return self.with_parts((part,))

    def with_parts(self, parts: Iterable[Part]) -> Page:
        """Put parts in the places of those with their keys."""
        changed: dict[str, dict[str, Part]] = {}
        for part in parts:
            of_node = changed.get(part.owner)
            if of_node is None:
                known = self.nodes.get(part.owner)
                of_node = changed[part.owner] = dict(known.parts) if known else {}
            of_node[part.key] = part
        nodes = {owner: NodeParts(owner, own) for owner, own in changed.items()}
        return Page({**self.nodes, **nodes})

    def without(self, owner: str, key: str) -> Page:
        """Leave a part out."""
        node = self.nodes[owner].without(key)
        if node.parts:
            return Page({**self.nodes, owner: node})
        return Page({name: n for name, n in self.nodes.items() if name != owner})


def _group_by_owner(
    parts: Iterable[Part], known_nodes: Mapping[str, NodeParts]
) -> dict[str, NodeParts]:
    """Sort parts by their owners."""
    parts_by_owner: dict[str, dict[str, Part]] = {}
    for part in parts:
        parts_by_owner.setdefault(part.owner, {})[part.key] = part
    nodes = {}
    for owner, own_parts in parts_by_owner.items():
        node = known_nodes.get(owner)
        same = node is not None and node.is_same(own_parts)
        nodes[owner] = (
            node if node is not None and same else NodeParts(owner, own_parts)
        )
    return nodes


_EMPTY = Page({})


class Pages:
    """All parts of a cluster: a frozen map from page number to page."""

    def __init__(self, pages: tuple[Page, ...] = (_EMPTY,) * PAGES) -> None:
        self._pages = pages

    def __iter__(self) -> Iterator[Page]:
        """Yield the pages that hold anything, in their order."""
        return (page for page in self._pages if page.nodes)

    def values(self) -> Iterator[PartValue]:
        """Yield all values, page by page."""
        return (part.value for page in self for part in page.parts())

    def of(self, owner: str) -> Iterator[PartValue]:
        """Yield the values of a node (or, for "", of the cluster)."""
        return self._pages[page_number_of(owner)].values_of(owner)

    def get(self, owner: str, key: str) -> PartValue | None:
        """Look up a part's value by its owner (node, or "") and key."""
        part = self._pages[page_number_of(owner)].get(owner, key)
        return None if part is None else part.value

    def with_value(self, value: PartValue) -> Pages:
        """Put a value in the place of the one with its key; itself when equal."""
        return self.with_values((value,))

    def with_values(self, values: Iterable[PartValue]) -> Pages:
        """Put values in the places of those with their keys; itself when all equal."""
        changed: dict[int, list[Part]] = {}
        for value in values:
            part = Part(value)
            number = page_number_of(part.owner)
            current = self._pages[number].get(part.owner, part.key)
            if current is None or current.value != value:
                changed.setdefault(number, []).append(part)
        if not changed:
            return self
        pages = list(self._pages)
        for number, parts in changed.items():
            pages[number] = pages[number].with_parts(parts)
        return Pages(tuple(pages))

    def without(self, owner: str, key: str) -> Pages:
        """Leave a part out; itself when there is none."""
        number = page_number_of(owner)
        page = self._pages[number]
        if page.get(owner, key) is None:
            return self
        return self._with_page(number, page.without(owner, key))

    def _with_page(self, number: int, page: Page) -> Pages:
        pages = self._pages
        return Pages((*pages[:number], page, *pages[number + 1 :]))


def page_number_of(owner: str) -> int:
    """Return which page holds the parts of a node (or, for "", of the cluster)."""
    return zlib.crc32(owner.encode()) % PAGES
