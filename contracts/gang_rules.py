"""Rules of a gang across its claims, pods and nodes, and paths to its devices.

Part of the Gang's document; what each rule means is in docs/semantics.md.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from contracts.errors import DecodeError
from contracts.ids import FullyQualifiedName
from contracts.structs import Int32, KubernetesStruct

ATTRIBUTE_KEY = "attribute:"
"""Begins a topology key that is an attribute of devices, not a label of nodes."""
EVEN: Literal["Even"] = "Even"
"""Size of the groups of a topology rule: pods in equal parts, a domain each."""
MAX_CONSTRAINTS, MAX_PATHS = 16, 32
"""Of a gang, and of one constraint; these limits are those of the Gang kind."""
MAX_TOPOLOGY, MAX_MEMBERS = 8, 64
"""Of a gang, and named by one entry."""

_PATH_RULE = "must be member[/claim[/request[/subrequest]]]"


class GangConstraint(KubernetesStruct, frozen=True, kw_only=True):
    """An attribute that devices of several pods must share or must differ in."""

    match_attribute: FullyQualifiedName | None = None
    distinct_attribute: FullyQualifiedName | None = None
    requests: tuple[str, ...] = ()
    """Paths of devices, see `DevicePath`; none: all devices of the gang."""
    scope: str = "Gang"
    """`Gang`: one set of devices; `Member`, `Pod`: one for each of these."""


class GangTopology(KubernetesStruct, frozen=True, kw_only=True):
    """How pods are spread over the domains of one key."""

    key: str
    """A node label, or `attribute:` and the full name of an attribute of devices."""
    members: tuple[str, ...] = ()
    """Members whose pods the rule is about; empty: all members."""
    mode: str = "Required"
    """`Required` or `Preferred`."""
    group_size: Int32 | Literal["Even"] | None = None
    """So many pods of each member, by index, are in one domain; absent: all are, unless
    `max_per_domain` is given. `Even`: each domain has as many pods of a member as any
    other that has some, and these domains are few."""
    max_per_domain: Int32 | None = None
    """Most pods in one domain; absent: any number."""

    @property
    def attribute(self) -> FullyQualifiedName | None:
        """The attribute of devices that the key names; None: it is a node label."""
        if not self.key.startswith(ATTRIBUTE_KEY):
            return None
        return FullyQualifiedName(self.key.removeprefix(ATTRIBUTE_KEY))

    @property
    def is_even(self) -> bool:
        """True if pods are in equal parts, in domains of their own."""
        return self.group_size == EVEN

    @property
    def size(self) -> int | None:
        """The pods of each group by index; None: there are no such groups."""
        return self.group_size if isinstance(self.group_size, int) else None

    def is_about(self, member: str) -> bool:
        """True if the rule is about the member."""
        return not self.members or member in self.members


class DevicePath(Struct, frozen=True):
    """`member[/claim[/request[/subrequest]]]`: devices that pods of a member got.

    A shorter path names all below it; a subrequest only where it was chosen.
    """

    member: str
    claim: str = ""
    """Empty: all claims, and so on."""
    request: str = ""
    subrequest: str = ""

    @classmethod
    def parse(cls, text: str) -> DevicePath:
        """Read a path as it is written.

        Raises:
            DecodeError: it has an empty part, or more than four.
        """
        parts = text.split("/")
        if not 1 <= len(parts) <= 4 or not all(parts):
            raise DecodeError("path", "$", _PATH_RULE)
        return cls(*parts)

    def covers(self, place: DevicePath) -> bool:
        """True if it includes all devices of the other path."""
        return all(
            said in ("", real)
            for said, real in (
                (self.member, place.member),
                (self.claim, place.claim),
                (self.request, place.request),
                (self.subrequest, place.subrequest),
            )
        )

    def __str__(self) -> str:
        parts = (self.member, self.claim, self.request, self.subrequest)
        return "/".join(part for part in parts if part)
