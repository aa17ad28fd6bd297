"""First fit and best fit: what any engine should at least come to.

Gangs come one after the other, whole or not at all. Pods take the first devices that
will do. *First fit* takes gangs by age and nodes by name. *Best fit* takes the most
worth first, the nodes with least free, and the domain with least free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.judge.cluster import (
    Claim,
    Cluster,
    Device,
    Domain,
    Gang,
    Ledger,
    Member,
    Node,
    Request,
)

Json = Any


class Greedy:
    """One pass over the gangs of a cluster, which it fills."""

    def __init__(self, cluster: Cluster, *, best: bool) -> None:
        self.cluster = cluster
        self.placed: dict[str, Ledger] = {}
        """What each gang has that is in."""
        self._best = best
        self._domains: dict[str, list[set[str]]] = {}
        self._failed: dict[tuple[str, str], int] = {}
        """Version of a node at which no pod of a likeness fits there any more."""
        self._loads: dict[str, int] = {}
        self._by_load: dict[int, dict[str, Node]] = {}
        for node in cluster.nodes.values():
            self._file(node)

    def run(self) -> int:
        """Place all that fit; says what they are worth."""
        gangs = self.cluster.gangs
        if self._best:
            gangs = sorted(gangs, key=lambda gang: -gang.weight)
        for gang in gangs:
            ledger = Ledger()
            if self._place_gang(gang, ledger):
                self.placed[gang.name] = ledger
        return sum(gang.weight for gang in gangs if gang.name in self.placed)

    def _place_gang(self, gang: Gang, ledger: Ledger) -> bool:
        whole = [rule for rule in gang.domains if rule.group is None]
        groups = [rule for rule in gang.domains if rule.group is not None]
        choices: list[set[str] | None] = [None]
        if whole:
            choices = self._sorted(self._domains_of(whole[0].key))
        for allowed in choices:
            if all(
                self._place_groups(member, groups[0], allowed, ledger)
                if groups
                else self._place_pods(member, member.count, allowed, ledger)
                for member in gang.members
            ):
                return True
            self._undo(ledger, 0)
        return False

    def _place_groups(
        self, member: Member, rule: Domain, allowed: set[str] | None, ledger: Ledger
    ) -> bool:
        """Place each group in the first domain that holds it."""
        size = rule.group or 1
        for first in range(0, member.count, size):
            pods = min(size, member.count - first)
            for domain in sorted(self._domains_of(rule.key), key=min):
                nodes = domain if allowed is None else domain & allowed
                mark = len(ledger)
                if self._place_pods(member, pods, nodes, ledger):
                    break
                self._undo(ledger, mark)
            else:
                return False
        return True

    def _place_pods(
        self, member: Member, pods: int, allowed: set[str] | None, ledger: Ledger
    ) -> bool:
        for node in self._candidates(allowed):
            seen = member.likeness, node.name
            if self._failed.get(seen) == node.version:
                continue
            while pods and self._place_pod(member, node, ledger):
                pods -= 1
            self._file(node)
            if not pods:
                return True
            self._failed[seen] = node.version
        return False

    def _place_pod(self, member: Member, node: Node, ledger: Ledger) -> bool:
        if node.cpu < member.cpu or node.memory < member.memory:
            return False
        mark = len(ledger)
        if not all(self._fill(node, claim, ledger) for claim in member.claims):
            ledger.undo(mark)
            return False
        ledger.take_node(node, member)
        return True

    def _fill(self, node: Node, claim: Claim, ledger: Ledger) -> bool:
        """Give a claim the first devices that will do, value by value where it asks."""
        for devices in _by_value(node, claim):
            mark = len(ledger)
            if all(self._serve(node, r, devices, ledger) for r in claim.requests):
                return True
            ledger.undo(mark)
        return False

    def _serve(
        self, node: Node, request: Request, devices: Iterable[Device], ledger: Ledger
    ) -> bool:
        left = request.count
        for device in devices:
            if not left:
                break
            if self.cluster.matches(node, device, request):
                left -= ledger.take_device(node, device, request.amounts)
        return not left

    # --- the order of nodes --------------------------------------------------------

    def _candidates(self, allowed: set[str] | None) -> list[Node]:
        if self._best:
            loads = sorted(self._by_load)
            order = [n for load in loads if load for n in self._by_load[load].values()]
        else:
            order = list(self.cluster.nodes.values())
        return [node for node in order if allowed is None or node.name in allowed]

    def _file(self, node: Node) -> None:
        """Keep a node under what is free of it."""
        load, before = node.load, self._loads.get(node.name)
        if load != before:
            if before is not None:
                del self._by_load[before][node.name]
            self._by_load.setdefault(load, {})[node.name] = node
            self._loads[node.name] = load

    def _undo(self, ledger: Ledger, to: int) -> None:
        touched = ledger.nodes(to)
        ledger.undo(to)
        for node in touched.values():
            self._file(node)

    def _domains_of(self, key: str) -> list[set[str]]:
        if key not in self._domains:
            found: dict[str, set[str]] = {}
            for node in self.cluster.nodes.values():
                if key in node.labels:
                    found.setdefault(node.labels[key], set()).add(node.name)
            self._domains[key] = list(found.values())
        return self._domains[key]

    def _sorted(self, domains: list[set[str]]) -> list[set[str] | None]:
        if not self._best:
            return [*sorted(domains, key=min)]

        def load(names: set[str]) -> int:
            return sum(self._loads[name] for name in names)

        return [*sorted(domains, key=load)]


def write_plan(greedy: Greedy) -> Json:
    """Write what was placed as `moorings plan` would, so that it can be judged."""
    gangs = {gang.name: gang for gang in greedy.cluster.gangs}
    claims: list[Json] = []
    for name, ledger in greedy.placed.items():
        numbers = dict.fromkeys((m.name for m in gangs[name].members), 0)
        members = {member.name: member for member in gangs[name].members}
        for member, node, devices in ledger.pods():
            results = iter(devices)
            for claim in members[member].claims:
                written = list(_write_results(claim, node, results))
                claims.append(
                    {
                        "gang": name,
                        "member": member,
                        "index": numbers[member],
                        "claim": claim.name,
                        "node": node.name,
                        "verdict": "allocated",
                        "allocation": {"devices": {"results": written}},
                    }
                )
            numbers[member] += 1
    verdicts = [{"name": name, "verdict": "allocated"} for name in greedy.placed]
    return {"gangs": verdicts, "claims": claims}


def _write_results(
    claim: Claim, node: Node, devices: Iterator[Device]
) -> Iterator[Json]:
    for request in claim.requests:
        for _ in range(request.count):
            device = next(devices).name
            yield {"request": request.name, "pool": node.name, "device": device}


def _by_value(node: Node, claim: Claim) -> Iterator[list[Device]]:
    """List the devices of a node, those of each value of the attribute apart."""
    devices = list(node.devices.values())
    if not claim.match:
        yield devices
        return
    (key,) = claim.match
    values = {d.attributes[key] for d in devices if key in d.attributes}
    for value in sorted(values, key=str):
        yield [device for device in devices if device.attributes.get(key) == value]
