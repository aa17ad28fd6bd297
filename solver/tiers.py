"""The goals of the objective by name, in the order in which they are pursued."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """One goal; an earlier one is never given up for a later one."""

    GANGS = "gangs"
    """For each priority the weight of the gangs that are in: the more, the better."""
    EXTRA = "extra"
    """For each priority the devices of pods without which their gangs would be in, too:
    the more, the better."""
    ALTERNATIVES = "alternatives"
    """Ranks of the chosen alternatives: the less, the better, as in what follows."""
    LEFTOVER = "leftover"
    """Value lost of what is left for expected pods."""
    TOPOLOGY = "topology"
    """What preferences about topology cost."""
    NODES = "nodes"
    """Nodes touched."""

    @property
    def is_gain(self) -> bool:
        """True if more of it is better; it is counted by priority then."""
        return self in (Tier.GANGS, Tier.EXTRA)

    @property
    def place(self) -> int:
        """Where it stands among all tiers."""
        return _PLACES[self]


_PLACES = {tier: place for place, tier in enumerate(Tier)}
