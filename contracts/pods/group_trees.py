"""Groups of PodGroups that are one gang (KEP-6012): what of them it begins with. Pure.

Source: k8s.io/kubernetes v1.38, pkg/scheduler/framework/plugins/gangscheduling.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from msgspec import Struct

from contracts.counts import counted
from contracts.pods.membership import OwnerKey


class GroupNode(Struct, frozen=True, kw_only=True):
    """A PodGroup of a gang, or a CompositePodGroup and what is under it."""

    key: OwnerKey
    needed: int
    """So many pods make a PodGroup whole, so many whole groups a CompositePodGroup."""
    member: str = ""
    """The member that the pods of a PodGroup are; empty: it has groups."""
    children: tuple[GroupNode, ...] = ()
    """In the order in which a gang begins with them."""

    @property
    def leaves(self) -> Iterator[GroupNode]:
        """Go through the PodGroups that are under it, or itself."""
        if self.member:
            yield self
        for child in self.children:
            yield from child.leaves

    @property
    def members(self) -> tuple[str, ...]:
        """The members that are under it."""
        return tuple(leaf.member for leaf in self.leaves)

    def is_whole(self, there: Mapping[str, int]) -> bool:
        """True if it can begin with so many pods of each member."""
        if self.member:
            return there.get(self.member, 0) >= self.needed
        return len(self._list_whole(there)) >= self.needed

    def list_core(self, there: Mapping[str, int]) -> Iterator[str]:
        """Go through the members with which it begins, if it is whole."""
        if self.member:
            yield self.member
        for child in self._list_whole(there)[: self.needed]:
            yield from child.list_core(there)

    def find_part(self, member: str, running: Container[str]) -> GroupNode:
        """Return the largest part with this member of which no member is running.

        If the member itself is running, its PodGroup.
        """
        part = self
        while part.children and any(each in running for each in part.members):
            part = next(each for each in part.children if member in each.members)
        return part

    def describe_missing(self, there: Mapping[str, int]) -> str:
        """Describe what it lacks, if it is not whole."""
        name = self.key.name
        if self.member:
            are_there = counted(
                self.needed, f"pod {name} is there", f"pods {name} are there"
            )
            return f"{there.get(self.member, 0)} of {are_there}"
        whole = self._list_whole(there)
        are_whole = counted(
            self.needed, f"group of {name} is whole", f"groups of {name} are whole"
        )
        text = f"{len(whole)} of {are_whole}"
        short = (child for child in self.children if child not in whole)
        first = next(short, None)
        return text if first is None else f"{text} ({first.describe_missing(there)})"

    def _list_whole(self, there: Mapping[str, int]) -> list[GroupNode]:
        return [child for child in self.children if child.is_whole(there)]
