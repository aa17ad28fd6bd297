"""Nodes that were taken out of their kind, with the pods that are on them."""

from __future__ import annotations

from msgspec import Struct

from solver.engines.greedy.states import Integers
from solver.engines.pattern.states.placing import Placement
from solver.kinds.shapes import NodeView


class PlacedPod(Struct, frozen=True):
    """A pod on its node."""

    member: int
    """Its kind."""
    placement: Placement
    state_before: int
    """Of the node's devices."""
    free_before: Integers


class UsedNode(Struct, eq=False):
    """A node that was taken out of its kind, with the pods that are on it."""

    row: int
    view: NodeView
    order: tuple[int, ...]
    """For each group of, its first state the index in the view."""
    pods: list[PlacedPod]
