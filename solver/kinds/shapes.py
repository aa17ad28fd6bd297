"""What a batch can see of nodes and devices: shapes, groups and kinds.

A group is the devices of one node that may serve the same kinds of request, cost the
same, and have equal values in every attribute that a constraint compares. The values
themselves do not matter, only which of them are equal, so they are numbered in a
canonical order: unique ids and PCIe addresses do not make nodes different. Nodes with
equal groups are one node kind.

Theorem. Two nodes with equal shapes are isomorphic for the batch: the groups' masks
decide every selector, taint and use, the numbered values every comparison inside a
node, the traits every counter and share, `fits` and `free` what is asked of the node
itself; devices that several nodes see, domains of several nodes and values that are
compared between nodes are named in the shape. So exchanging the nodes
in an answer leaves it valid and its value equal.
(The converse is not needed: a missed isomorphism costs time, not truth.)
"""

from __future__ import annotations

from msgspec import Struct

from contracts.ids import DeviceID, NodeName
from solver.kinds.traits import PLAIN, Traits
from solver.problem.attributes import Element

Identity = tuple[object, ...]
"""What names devices that several nodes see; empty: they are the node's own."""


class DeviceGroup(Struct, frozen=True):
    """Devices of a node that the batch cannot tell apart."""

    devices: tuple[DeviceID, ...]
    positions: tuple[int, ...]
    """Where kube-scheduler would look at each of them, among all of the node."""


class GroupShape(Struct, frozen=True, cache_hash=True):
    """A group without its devices' names."""

    mask: int
    """Bit k: may serve request kind k."""
    values: tuple[tuple[int, ...], ...]
    """Numbers of the values of each column; empty: the devices lack it."""
    size: int
    traits: Traits = PLAIN
    identity: Identity = ()
    elements: tuple[tuple[Element, ...], ...] = ()
    """The values themselves, by `Query.named`: what gangs compare between nodes."""
    is_pinning: bool = False
    """True if a claim that has one is for one node, though several see the device."""

    @property
    def is_shareable(self) -> bool:
        """True if several requests may have its one device."""
        return self.traits.left is not None


class CounterShape(Struct, frozen=True):
    """What is left of a counter."""

    left: int
    identity: Identity = ()


CounterSets = tuple[tuple[tuple[str, ...] | None, Identity], ...]
"""For each counter set, the compatibility groups that are left, and who it is."""


class DomainPlace(Struct, frozen=True):
    """The domain of a node, as a rule between pods sees it."""

    domain: str
    """Empty where the node is a domain alone."""
    is_open: bool
    """True if it has what is wanted already."""
    count: int
    """Pods that run and count, where it is a domain alone."""


class NodeShape(Struct, frozen=True, cache_hash=True):
    """All that the batch can see of a node; equal for nodes of one kind."""

    groups: tuple[GroupShape, ...]
    all_free: int
    """Bit k: every device that kind k means here is to be had, and one exists."""
    counters: tuple[CounterShape, ...] = ()
    sets: CounterSets = ()
    fits: int = 1
    """Bit i: the node has what `Query.fits[i]` asks in kind."""
    free: tuple[int | None, ...] = ()
    """What is left, by `Query.resources`, then by `Query.counted`; None: enough for
    whatever fits otherwise."""
    places: tuple[DomainPlace | None, ...] = ()
    """Where the node is, by `Query.domains`; None: pods on it do not count."""
    domains: tuple[str | None, ...] = ()
    """Its labels, by `Query.labels`; None: it lacks the label."""


class NodeView(Struct, frozen=True):
    """A node as the batch sees it."""

    name: NodeName
    shape: NodeShape
    groups: tuple[DeviceGroup, ...]
    """As many as the shape's, in its order."""


class NodeKind(Struct, frozen=True):
    """Nodes that the batch cannot tell apart."""

    shape: NodeShape
    nodes: tuple[NodeView, ...]
    """By name."""
