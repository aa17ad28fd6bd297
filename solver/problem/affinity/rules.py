"""What the rules between pods come to for a member: node sets, amounts and domains.

Nothing of it is recorded: it follows from the members' own words, the pods that run and
the labels of nodes (`solver/kinds/affinity/resolve.py`). What can be said node by node
is a `NodeSet` or a `CountedRule`, which every engine knows; what pods on several nodes
decide together is a `DomainRule`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from contracts.allocation import Rule
from contracts.device import NodeSelector
from contracts.gang import NodeToleration
from contracts.ids import NodeName

NEAR, APART, SPREAD = "near", "apart", "spread"
CARRIER, MEANT, ANCHOR = 1, 2, 4
"""What pods are to a rule, as bits: it is theirs; it is about them; it may rely on
them."""


class NodeSet(Struct, frozen=True, cache_hash=True):
    """Nodes by the value of a label: those with one of some values, or with none."""

    key: str
    values: frozenset[str]
    inside: bool
    """True if a node must have one of the values; else none of them."""
    labelled: bool
    """True if a node must have the label at all."""
    rule: Rule
    """The rule that they follow from."""
    why: str = ""
    """What is in the way, or lacking, in words."""

    def has(self, labels: Mapping[str, str]) -> bool:
        """True if a node with these labels is one of them."""
        value = labels.get(self.key)
        if value is None:
            return not self.labelled
        return (value in self.values) is self.inside


class CountedRule(Struct, frozen=True, cache_hash=True, dict=True):
    """A rule as a resource: each node has an amount, of which pods take some."""

    rule: Rule
    about: str
    """What it is about, in words; rules that differ in it are two."""
    capacity: int
    key: str = ""
    """The label without which a node sets no limit; empty: every node does."""
    used: tuple[tuple[NodeName, int], ...] = ()
    """What pods that run take, by node, sorted."""

    @cached_property
    def used_by_node(self) -> dict[NodeName, int]:
        """What pods that run take, by node."""
        return dict(self.used)

    def left_on(self, node: NodeName, labels: Mapping[str, str]) -> int | None:
        """Return how much a node has left; None: it sets no limit."""
        if self.key and self.key not in labels:
            return None
        return max(self.capacity - self.used_by_node.get(node, 0), 0)


class DomainRule(Struct, frozen=True, cache_hash=True, dict=True):
    """How pods of a batch must share the domains of a label, or not.

    Of `near`, a carrier's domain has an anchor, or is `open`, or (`alone_is_enough`)
    all pods that the rule is about are in it. Of `apart`, a domain with a carrier has
    no other pod that the rule is about. Of `spread`, a domain with a carrier has at
    most `max_skew` more pods that the rule is about than `floor`, or than the domain
    that has least.
    """

    kind: str
    about: str
    """What it is about, in words; rules that differ in it are two."""
    key: str
    by_node: bool
    """True if no two nodes share a value: each is its own domain."""
    open: frozenset[str] = frozenset()
    """Domains that have what is wanted already: pods that run."""
    alone_is_enough: bool = False
    max_skew: int = 0
    floor: int | None = None
    counts: tuple[tuple[str, int], ...] = ()
    """Pods that run and are counted, by every domain that there is; sorted."""
    keys: tuple[str, ...] = ()
    """Labels that a node must have, with any value, for its pods to count."""
    node_selector: tuple[tuple[str, str], ...] = ()
    """Labels that it must have with these values; sorted."""
    affinity: NodeSelector | None = None
    """Required node affinity that it must match."""
    tolerations: tuple[NodeToleration, ...] | None = None
    """Tolerations that must cover its taints; None: taints do not matter."""

    @cached_property
    def count_by_domain(self) -> dict[str, int]:
        """Pods that run and are counted, by domain."""
        return dict(self.counts)


class Role(Struct, frozen=True):
    """What a member is to a rule."""

    rule: DomainRule
    bits: int


class Take(Struct, frozen=True):
    """How much of a counted rule each pod takes."""

    rule: CountedRule
    amount: int


class ResolvedRules(Struct, frozen=True, cache_hash=True):
    """All that rules between pods ask of one member."""

    node_sets: tuple[NodeSet, ...] = ()
    takes: tuple[Take, ...] = ()
    roles: tuple[Role, ...] = ()
