"""The nodes that are there, each with its labels and a digest of its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class KnownNode(Struct, frozen=True, kw_only=True):
    """What plans ask of one node."""

    state: str = ""
    """A digest; it changes when anything does that pods depend on."""
    labels: Mapping[str, str] = {}


class KnownNodes:
    """All nodes by name."""

    def __init__(self) -> None:
        self._nodes: dict[str, KnownNode] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    @property
    def names(self) -> frozenset[str]:
        """All of their names."""
        return frozenset(self._nodes)

    def state(self, name: str) -> str:
        """Return a digest of how a node is; empty: it is not there."""
        node = self._nodes.get(name)
        return "" if node is None else node.state

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a node; none: it is not there."""
        node = self._nodes.get(name)
        return {} if node is None else node.labels

    def apply(self, name: str, node: KnownNode | None) -> bool:
        """Take in how a node is now (None: it is gone); False: no node came or went."""
        was_there = name in self._nodes
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        return was_there is (node is None)
