"""What a game with the plans is played with: pods that may exist, nodes and devices."""

from __future__ import annotations

from msgspec import Struct


class Slot(Struct, frozen=True):
    """A pod that may exist: made, gone and made anew under one name."""

    name: str
    gang: str = ""
    own: int = 1
    """Claims of templates."""
    theirs: bool = False
    """Whether it has a claim that is left to kube-scheduler."""
    shared: str = ""
    """A ResourceClaim that others may use as well."""


class Setting(Struct, frozen=True):
    """What a game is played with."""

    slots: tuple[Slot, ...]
    nodes: int = 2
    devices: int = 3
    rival: bool = False
    """Whether a second publisher acts on whatever it happens to know."""
    late: bool = False
    """Whether writes may be under way while other things happen."""
