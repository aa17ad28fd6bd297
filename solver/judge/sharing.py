"""Claims that several pods of a gang share: one allocation, in reach of all of them.

A shared claim is allocated on the node of one of its pods, as kube-scheduler does for
the first that it binds; which one is not said, so the first that will do counts.
Source: allocation.nodeSelector of resource.k8s.io/v1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from contracts.allocation import AllocationResult
from contracts.ids import ClaimRef, NodeName
from contracts.messages import MemberAllocated
from solver.decision import GangDecision
from solver.judge.devices import judge_device
from solver.judge.facts import Facts, Violations
from solver.judge.pods import PodJudge
from solver.judge.pools import selects
from solver.judge.uses import Use
from solver.problem.gangs import GangPart, MemberPart

_User = tuple[MemberAllocated, MemberPart, int]
"""A pod, what it asks for, and which of its claims it is."""


class SharedClaims:
    """The shared claims of a gang that is in; read `violations` first."""

    def __init__(
        self, facts: Facts, gang: GangPart, members: tuple[MemberAllocated, ...]
    ) -> None:
        self._facts = facts
        self._gang = gang
        self.rank = 0
        self.uses: list[Use] = []
        pods = Counter(
            name
            for member in gang.members
            for name in {claim.claim_name for claim in member.claims} - {""}
            for _ in range(member.count)
        )
        self.names = frozenset(name for name, count in pods.items() if count > 1)
        self._users: dict[str, list[_User]] = {name: [] for name in sorted(self.names)}
        parts = {member.name: member for member in gang.members}
        for pod in members if self.names else ():
            part = parts.get(pod.member)
            said = [claim.claim for claim in pod.claims]
            if part is None or said != [claim.name for claim in part.claims]:
                continue  # said of the pod itself
            for number, claim in enumerate(part.claims):
                if claim.claim_name in self.names:
                    self._users[claim.claim_name].append((pod, part, number))

    def uses_of(self, pod: MemberAllocated) -> Iterator[Use]:
        """Yield the devices that a pod shares, each as one of its claims."""
        for name, users in self._users.items():
            for other, _, number in users:
                if other is pod:
                    mine = (use for use in self.uses if use.shared == name)
                    yield from (structs.replace(use, claim=number) for use in mine)

    def violations(self) -> Violations:
        """List what is wrong with the claims."""
        for name, users in self._users.items():
            if users:
                yield from self._one_claim(name, users)

    def _one_claim(self, name: str, users: list[_User]) -> Violations:
        subject = f"{self._gang.name}/claim {name}"
        said = [pod.claims[number] for pod, _, number in users]
        if any(
            (s.ref, s.allocation) != (said[0].ref, said[0].allocation) for s in said
        ):
            yield f"sharedClaimIsOne: {subject} says different things of its pods"
        # First it is a claim like any other, on the node of one of its pods.
        judged: dict[NodeName, tuple[PodJudge, list[str]]] = {}
        for pod, part, number in users:
            if pod.node not in judged:
                trial = PodJudge(self._facts, self._gang, pod, subject=subject)
                found = list(trial.claim(part.claims[number], number))
                judged[pod.node] = (trial, found)
                if not found:
                    break
        trial, found = min(judged.values(), key=lambda entry: bool(entry[1]))
        yield from found
        mine = [structs.replace(use, shared=name) for use in trial.uses]
        self.uses.extend(mine)
        self.rank += trial.rank
        # Then every pod is where its devices can be had.
        home = mine[0].node if mine else users[0][0].node
        nodes = dict.fromkeys(pod.node for pod, _, _ in users)
        for node in (node for node in nodes if node != home):
            yield from self._devices_are_reached(
                node, mine, said[0].allocation, subject
            )

    def _devices_are_reached(
        self,
        name: NodeName,
        uses: list[Use],
        allocation: AllocationResult,
        subject: str,
    ) -> Violations:
        """Each device can be had from a node, and what is written selects the node."""
        node, selector = self._facts.find_node(name), allocation.node_selector
        if selector is not None and not selects(selector, node):
            yield f"sharedClaimReached: {subject} is not for {name}, as it is written"
        for use in uses:
            there = self._facts.find_device(name, use.device)
            if there is None:
                yield f"sharedClaimReached: {use.device} of {subject} not from {name}"
                continue
            device = (use.device, there)
            yield from judge_device(self._facts, name, use.subrequest, device, subject)


def list_allocations(decided: GangDecision) -> list[AllocationResult]:
    """List what the claims of a gang got; what pods share stands there once."""
    allocation_by_claim: dict[ClaimRef, AllocationResult] = {}
    for pod in decided.members:
        for claim in pod.claims:
            allocation_by_claim.setdefault(claim.ref, claim.allocation)
    return list(allocation_by_claim.values())
