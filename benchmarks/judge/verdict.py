"""True if a plan keeps every rule of its world, and what it is worth."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from benchmarks.judge.cluster import Claim, Cluster, Gang, Ledger, Member, Node

Json = Any
Pod = tuple[str, int]
"""Member and index."""


@dataclass(frozen=True)
class Verdict:
    """What was found."""

    gangs: int
    """Gangs that are in."""
    value: int
    wrong: Counter[str]
    """How often each rule is broken."""


def judge_plan(cluster: Cluster, plan: Json) -> Verdict:
    """Carry a plan out on its cluster, which must be as it was drawn."""
    judge = _Judge(cluster)
    names = [each["name"] for each in plan["gangs"] if each["verdict"] == "allocated"]
    claims: defaultdict[str, list[Json]] = defaultdict(list)
    for claim in plan["claims"]:
        if claim["verdict"] == "allocated":
            claims[claim["gang"]].append(claim)
    judge.wrong["claims of a gang that is out"] += len(set(claims) - set(names))
    gangs = {gang.name: gang for gang in cluster.gangs}
    for name in names:
        judge.place(gangs[name], claims[name])
    for node in cluster.nodes.values():
        judge.wrong["too little CPU"] += node.cpu < 0
        judge.wrong["too little memory"] += node.memory < 0
    value = sum(gangs[name].weight for name in names)
    return Verdict(len(names), value, +judge.wrong)


class _Judge:
    """Places gang by gang, and counts what is wrong."""

    def __init__(self, cluster: Cluster) -> None:
        self.wrong: Counter[str] = Counter()
        self._cluster = cluster
        self._ledger = Ledger()

    def place(self, gang: Gang, claims: list[Json]) -> None:
        """Give a gang what the plan gives it."""
        pods: defaultdict[Pod, dict[str, Json]] = defaultdict(dict)
        for claim in claims:
            pods[claim["member"], claim["index"]][claim["claim"]] = claim
        members = {member.name: member for member in gang.members}
        wanted = {(m.name, index) for m in gang.members for index in range(m.count)}
        self.wrong["not all pods of a gang"] += set(pods) != wanted
        self.wrong["a claim twice"] += sum(map(len, pods.values())) != len(claims)
        places: dict[Pod, Node] = {}
        for (name, index), given in pods.items():
            node = self._place_pod(members[name], given)
            if node is not None:
                places[name, index] = node
        self._check_domains(gang, places)

    def _place_pod(self, member: Member, given: dict[str, Json]) -> Node | None:
        names = {claim["node"] for claim in given.values()}
        if len(names) != 1 or set(given) != {claim.name for claim in member.claims}:
            self.wrong["a pod on two nodes, or without a claim"] += 1
            return None
        node = self._cluster.nodes[names.pop()]
        self._ledger.take_node(node, member)
        for claim in member.claims:
            results = given[claim.name]["allocation"]["devices"]["results"]
            self._give(node, claim, results)
        return node

    def _give(self, node: Node, claim: Claim, results: list[Json]) -> None:
        if any(
            r["pool"] != node.name or r["device"] not in node.devices for r in results
        ):
            self.wrong["a device of another node"] += 1
            return
        served = 0
        for request in claim.requests:
            names = [r["device"] for r in results if r["request"] == request.name]
            devices = [node.devices[name] for name in names]
            served += len(devices)
            self.wrong["number of devices"] += len(devices) != request.count
            self.wrong["a device twice in a request"] += len(set(names)) != len(names)
            for device in devices:
                matches = self._cluster.matches(node, device, request)
                self.wrong["selector"] += not matches
                if not self._ledger.take_device(node, device, request.amounts):
                    self.wrong["taken twice, counters or capacity"] += 1
        self.wrong["devices that nobody asked for"] += served != len(results)
        for key in claim.match:
            values = {node.devices[r["device"]].attributes.get(key) for r in results}
            self.wrong["matchAttribute"] += len(values) != 1 or None in values

    def _check_domains(self, gang: Gang, places: dict[Pod, Node]) -> None:
        for rule in gang.domains:
            values: defaultdict[object, set[str | None]] = defaultdict(set)
            for (name, index), node in places.items():
                group = None if rule.group is None else (name, index // rule.group)
                values[group].add(node.labels.get(rule.key))
            for found in values.values():
                self.wrong["topology"] += len(found) != 1 or None in found
