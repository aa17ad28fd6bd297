"""Pods of a gang that have their place already, as far as its rules look at them.

They are recorded with what they have; what that leaves to the pods that are asked for
follows from the Problem (`solver/kinds/growth.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from msgspec import Struct

from contracts.gang_rules import DevicePath, GangTopology
from contracts.ids import DeviceID, FullyQualifiedName, NodeName


class HeldPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A device that a pod has, and what it was given for."""

    claim: str
    """As the pod calls it."""
    request: str
    """As results name it: with the subrequest that was chosen."""
    device: DeviceID
    derived_attributes: tuple[tuple[FullyQualifiedName, str], ...] = ()
    """(attribute, expression) of the request."""


class StandingPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """A pod that stays where it is, beside which others are asked for."""

    member: str
    index: int = 0
    node: NodeName
    pods: int = 1
    """Pods that it stands for."""
    devices: tuple[HeldPart, ...] = ()

    def path_of(self, held: HeldPart) -> DevicePath:
        """Return the path by which constraints name one of its devices."""
        request, _, subrequest = held.request.partition("/")
        return DevicePath(self.member, held.claim, request, subrequest)


class StandingPod(Struct, frozen=True):
    """The domains of a pod that has its place."""

    member: str
    index: int
    pods: int
    domains: tuple[Hashable, ...]
    """By entry of the gang's topology; None: it has no domain of that key."""


class StandingSet(Struct, frozen=True):
    """Values that devices of such pods have of the attribute of one constraint."""

    constraint: int
    member: str
    """Whose devices the set is of; empty: those of the gang."""
    values: tuple[tuple[tuple[str, object], ...], ...]
    """By device, sorted."""


class StandingRules(Struct, frozen=True):
    """What pods that have a place leave to a gang's rules."""

    pods: tuple[StandingPod, ...] = ()
    sets: tuple[StandingSet, ...] = ()


class StandingView:
    """Pods that have their place, as one entry of their gang's topology sees them."""

    def __init__(self, rules: StandingRules, number: int, rule: GangTopology) -> None:
        """`number`: the place of the entry."""
        self._size = rule.size or 1
        self._pods = [
            (pod, pod.domains[number])
            for pod in rules.pods
            if rule.is_about(pod.member)
        ]

    def domains(self) -> frozenset[Hashable]:
        """List their domains."""
        return frozenset(domain for _, domain in self._pods)

    def domains_of(self, member: str, group: int) -> frozenset[Hashable]:
        """List the domains of one group of a member."""
        return frozenset(
            domain
            for pod, domain in self._pods
            if (pod.member, pod.index // self._size) == (member, group)
        )

    def counts(self) -> tuple[tuple[Hashable, int], ...]:
        """Count them by domain."""
        counts = Counter[Hashable]()
        for pod, domain in self._pods:
            if domain is not None:
                counts[domain] += pod.pods
        return tuple(counts.items())
