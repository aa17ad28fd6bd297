"""Claims that several pods of a gang have, for trying everything: the models' oracle.

Written from docs/semantics.md alone; shares no code with kinds, models or judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from msgspec import structs

from solver.problem.gangs import GangPart, MemberPart
from solver.snapshot.parts import NodePart
from tests.oracles.brute_gangs import Had, Member, is_plain
from tests.oracles.brute_world import Place, World


def claims_of_many(gang: GangPart) -> list[str]:
    """Name the claims that more than one pod has."""
    users: dict[str, int] = {}
    for member in gang.members:
        for name in {claim.claim_name for claim in member.claims}:
            users[name] = users.get(name, 0) + member.count
    return sorted(name for name, count in users.items() if name and count > 1)


def without_claims(member: MemberPart, names: list[str]) -> MemberPart:
    """Leave a pod the claims that it has alone."""
    own = tuple(claim for claim in member.claims if claim.claim_name not in names)
    return structs.replace(member, claims=own)


class Merged:
    """Pods of gangs without rules: only on which nodes they are matters."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Member] = {}

    def add(
        self, pods: tuple[Member, ...], name: str, node: NodePart
    ) -> tuple[Member, ...]:
        """Remember that a pod of this name is on a node, whichever it is."""
        key = (name, node.name)
        one = self.known.setdefault(key, Member(name, 0, node, 1, ()))
        return tuple(sorted({*pods, one}, key=lambda pod: (pod.name, pod.node.name)))


State = TypeVar("State")
"""What is taken."""
Allocate = Callable[
    [MemberPart, int, Place, State], Iterable[tuple[State, int, tuple[Had, ...]]]
]
"""Allocates a claim on a node in every way: what is taken then, ranks, devices."""


class Sharing:
    """One claim that several pods of a gang have."""

    def __init__(self, world: World, gang: GangPart, name: str) -> None:
        self.world = world
        self.gang = gang
        self.names = {
            member.name: claim
            for member in gang.members
            for claim in member.claims
            if claim.claim_name == name
        }

    def give(
        self,
        states: dict[tuple[State, tuple[Member, ...], int], int],
        allocate: Allocate[State],
    ) -> dict[tuple[State, tuple[Member, ...], int], int]:
        """Give the claim in every way: had where one pod is, seen by all of them."""
        alone = MemberPart(name="", claims=(next(iter(self.names.values())),))
        found: dict[tuple[State, tuple[Member, ...], int], int] = {}
        for (known, pods, extra), ranks in states.items():
            users = [pod for pod in pods if pod.name in self.names]
            for number, home in enumerate(self.world.places):
                if not any(home.node is pod.node for pod in users):
                    continue
                for more, rank, had in allocate(alone, number, home, known):
                    if not all(self.seen_from(pod, had, home) for pod in users):
                        continue
                    together = pods
                    if not is_plain(self.gang):
                        together = tuple(self.with_shared(pod, had) for pod in pods)
                    key = (more, together, extra)
                    found[key] = min(ranks + rank, found.get(key, 1 << 30))
        return found

    def seen_from(self, pod: Member, had: tuple[Had, ...], home: Place) -> bool:
        """Say whether a pod may use what a claim has that was allocated elsewhere."""
        if pod.node is home.node:
            return True
        place = next(p for p in self.world.places if p.node is pod.node)
        for one in had:
            there = [t for t in place.things if t.name == one.thing.name and t.here]
            if not there or not self.world.open(one.asked, there[0], place):
                return False
            # Some results are for the node alone where they were made.
            item, device = there[0].item, there[0].device
            where = device if item.per_device_node_selection else item
            terms = (
                where.node_selector.node_selector_terms if where.node_selector else ()
            )
            if device.binds_to_node or len(terms) > 1:
                return False
        return True

    def with_shared(self, pod: Member, had: tuple[Had, ...]) -> Member:
        """Let a pod have what the claim has, by its own name for it."""
        claim = self.names.get(pod.name)
        if claim is None:
            return pod
        mine = tuple(replace(one, claim=claim, shared=claim.claim_name) for one in had)
        return replace(pod, devices=(*pod.devices, *mine))
