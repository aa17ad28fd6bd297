"""How deep documents may be, and how much the aliases of YAML may make of them.

What reads documents afterwards goes down by recursion, some of it in C and without a
limit, and follows each alias anew. Nothing here does either. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from msgspec import Struct

from moorings.errors import BadInputError

MAX_LEVELS = 400
"""Levels of nesting, aliases followed; objects of Kubernetes have some thirty. An item
of a list in JSON counts by itself."""
MAX_ALIASED = 100_000
"""Nodes that the aliases of one document may stand for, all together."""
_COLLECTIONS = (dict, list)
TOO_DEEP = f"nested over {MAX_LEVELS} deep"


def check_levels(source: str, value: Any) -> None:
    """Check a value that was parsed from JSON.

    Raises:
        BadInputError: it is nested too deeply.
    """
    level = [value] if isinstance(value, _COLLECTIONS) else []
    for _ in range(MAX_LEVELS):
        if not level:
            return
        level = [
            found
            for node in level
            for found in (node.values() if isinstance(node, dict) else node)
            if isinstance(found, _COLLECTIONS)
        ]
    if level:
        raise BadInputError(source, TOO_DEEP)


class _Node(Struct):
    """A node of YAML so far: what it is with its aliases followed."""

    anchor: str | None = None
    nodes: int = 1
    levels: int = 0


class _Document:
    """A document of YAML as far as it was read; nothing of it is kept but sizes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._opened = [_Node()]
        self._anchored: dict[str, _Node] = {}
        self._aliased = 0

    def begin(self, anchor: str | None) -> None:
        """Begin a collection."""
        self._opened.append(_Node(anchor, levels=1))
        self._check_depth(0)

    def end(self) -> None:
        """End the collection that was begun last."""
        self.add(self._opened.pop())

    def add(self, node: _Node) -> None:
        """Add what is complete to the collection it is in."""
        if node.anchor is not None:
            self._anchored[node.anchor] = node
        parent = self._opened[-1]
        parent.nodes += node.nodes
        parent.levels = max(parent.levels, node.levels + 1)

    def follow(self, anchor: str) -> None:
        """Add what an alias stands for; one without an anchor PyYAML refuses."""
        if any(node.anchor == anchor for node in self._opened):
            raise BadInputError(self._source, f"*{anchor} refers to what it is in")
        meant = self._anchored.get(anchor, _Node())
        self._aliased += meant.nodes
        if self._aliased > MAX_ALIASED:
            reason = f"aliases up to *{anchor} stand for over {MAX_ALIASED} nodes"
            raise BadInputError(self._source, reason)
        self._check_depth(meant.levels)
        self.add(meant)

    def _check_depth(self, levels: int) -> None:
        if len(self._opened) - 1 + levels > MAX_LEVELS:
            raise BadInputError(self._source, TOO_DEEP)


def check_events(source: str, events: Iterable[yaml.Event]) -> None:
    """Check a text of YAML by its events, which are made without recursion.

    Raises:
        BadInputError: a document is nested too deeply, or its aliases stand for too
            much, or one of them for what it is in.
    """
    document = _Document(source)
    for event in events:
        match event:
            case yaml.DocumentStartEvent():
                document = _Document(source)
            case yaml.CollectionStartEvent(anchor=anchor):
                document.begin(anchor)
            case yaml.CollectionEndEvent():
                document.end()
            case yaml.ScalarEvent(anchor=anchor):
                document.add(_Node(anchor))
            case yaml.AliasEvent(anchor=str(anchor)):
                document.follow(anchor)
            case _:
                pass
