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
    owner: str = ""
    """The kind of workload that makes it, anew when it goes; empty: a person."""
    extra: bool = False
    """Whether the gang is whole without it, as when a workload was scaled up."""


class Setting(Struct, frozen=True):
    """What a game is played with."""

    slots: tuple[Slot, ...]
    nodes: int = 2
    devices: int = 3
    rival: bool = False
    """Whether a second publisher acts on whatever it happens to know."""
    recovery: str = ""
    """What the pods say of it; empty: nothing."""
    immediate: tuple[str, ...] = ()
    """Claims that are allocated without a pod; pods may share them."""
    late: bool = False
    """Whether writes may be under way while other things happen."""

    @property
    def shared(self) -> list[str]:
        """Name the ResourceClaims that pods share, or that need none."""
        named = {slot.shared for slot in self.slots} - {""}
        return sorted({*named, *self.immediate})

    def size_of(self, gang: str) -> int:
        """Say how many pods make a gang whole."""
        of_gang = [slot for slot in self.slots if slot.gang == gang]
        return max(1, sum(not slot.extra for slot in of_gang))
