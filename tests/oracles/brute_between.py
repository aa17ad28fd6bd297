"""Ports, near, apart and spread, pod by pod: what the models' oracle knows of them.

Written from docs/semantics.md alone; shares no code with kinds, models or judge.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from contracts.pods.pod_rules import PodRules, PodTerm, SpreadTerm
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart
from tests.oracles.brute_world import World

Sort = tuple[str, MemberPart]
"""A namespace and a member of it."""


@dataclass(frozen=True)
class Somebody:
    """A pod on a node; `sort` is -1 where it runs already."""

    node: NodePart
    namespace: str
    labels: dict[str, str]
    rules: PodRules
    sort: int
    going: bool = False


class Between:
    """The rules between the pods of a Problem."""

    def __init__(self, problem: Problem, world: World) -> None:
        self.world = world
        parts = [part.value for page in problem.pages for part in page.parts()]
        nodes = [v for v in parts if isinstance(v, NodePart)]
        self.nodes = {n.name: n for n in nodes if n.unavailable != "no Node"}
        self.sorts: list[Sort] = []
        self.running = [
            Somebody(
                self.nodes[n.node],
                n.pod.namespace,
                n.pod.labels,
                PodRules(ports=n.pod.ports, apart=n.pod.apart),
                -1,
                n.pod.terminating,
            )
            for n in problem.neighbours
            if n.node in self.nodes
            for _ in range(n.pod.count)
        ]
        self._needing: dict[tuple[int, int], bool] = {}
        rules = [m.pod_rules for gang in problem.gangs for m in gang.members]
        self.is_quiet = not self.running and set(rules) <= {PodRules()}
        for gang in problem.gangs:
            for member in () if gang.refused else gang.members:
                self.sort_of(gang, member)

    def sort_of(self, gang: GangPart, member: MemberPart) -> int:
        """Number what a pod is and asks of others; one number where nobody asks."""
        if self.is_quiet:
            return 0
        sort = (str(gang.namespace), member)
        if sort not in self.sorts:
            self.sorts.append(sort)
        return self.sorts.index(sort)

    def pods(self, placed: list[tuple[int, int]]) -> list[Somebody]:
        """List all pods: those that run, and those placed as (place, sort)."""
        return [*self.running, *(self.pod(*each) for each in placed)]

    def pod(self, place: int, number: int) -> Somebody:
        """Make a pod of a sort on a place."""
        namespace, member = self.sorts[number]
        node = self.world.places[place].node
        return Somebody(node, namespace, member.labels, member.pod_rules, number)

    # --- what more pods never mend -------------------------------------------------

    def may_hold(self, placed: list[tuple[int, int]]) -> bool:
        """Check ports and whoever must be apart."""
        pods = [] if self.is_quiet else self.pods(placed)
        for i, one in enumerate(pods):
            for two in pods[i + 1 :]:
                if one.sort == two.sort == -1:
                    continue
                if not may_meet(one, two):
                    return False
        return True

    # --- what only the whole answer shows ------------------------------------------

    def hold(self, placed: list[tuple[int, int]]) -> bool:
        """Check who must be near whom, and the spread."""
        return self.is_quiet or self.all_hold(self.pods(placed))

    def all_hold(self, pods: list[Somebody]) -> bool:
        """Check the same of pods that are known already; equal ones on a node once."""
        asking = {(pod.sort, pod.node.name): pod for pod in pods if pod.sort >= 0}
        return all(
            self._is_near(pod, pods) and self._is_spread(pod, pods)
            for pod in asking.values()
        )

    def _is_near(self, pod: Somebody, pods: list[Somebody]) -> bool:
        terms = pod.rules.near
        if any(t.topology_key not in pod.node.labels for t in terms):
            return False
        meant = [other for other in pods if _all_mean(terms, other)]
        sure = [p for p in meant if p.sort == -1 or not self._needs(p.sort, pod.sort)]
        runs = any(
            p.sort == -1 and any(t.topology_key in p.node.labels for t in terms)
            for p in meant
        )
        new = [p for p in meant if p.sort >= 0]
        for term in terms:
            here = pod.node.labels[term.topology_key]

            def at(other: Somebody, key: str = term.topology_key) -> str | None:
                return other.node.labels.get(key)

            if any(at(other) == here for other in sure):
                continue
            is_first = pod in meant and not runs
            if not is_first or any(at(other) != here for other in new):
                return False
        return True

    def _needs(self, one: int, two: int) -> bool:
        """Say whether pods of a sort need those of another near, in turn."""
        if (one, two) not in self._needing:
            self._needing[one, two] = self._find_needs(one, two)
        return self._needing[one, two]

    def _find_needs(self, one: int, two: int) -> bool:
        seen: set[int] = set()
        left = [one]
        while left:
            number = left.pop()
            if number in seen:
                continue
            seen.add(number)
            terms = self.sorts[number][1].pod_rules.near
            for other, (namespace, member) in enumerate(self.sorts):
                node = NodePart(name=next(iter(self.nodes)))
                labels, rules = member.labels, member.pod_rules
                somebody = Somebody(node, namespace, labels, rules, other)
                if _all_mean(terms, somebody):
                    left.append(other)
        # Sorts that the rules cannot tell apart are one.
        return any(self._alike(number, two) for number in seen)

    def _alike(self, one: int, two: int) -> bool:
        (here, first), (there, second) = self.sorts[one], self.sorts[two]
        return (here, first.labels, first.pod_rules) == (
            there,
            second.labels,
            second.pod_rules,
        )

    def _is_spread(self, pod: Somebody, pods: list[Somebody]) -> bool:
        member = self.sorts[pod.sort][1]
        if any(t.topology_key not in pod.node.labels for t in pod.rules.spread):
            return False
        for term in pod.rules.spread:
            key = term.topology_key
            chosen = Counter(
                p.node.name
                for p in pods
                if p.namespace == pod.namespace
                and not p.going
                and _chosen(term.selector, p.labels)
            )
            counts: dict[str, int] = {}
            beside = 0
            for node in self.nodes.values():
                if not self._counts(node, member, term):
                    continue
                value, here = node.labels[key], chosen[node.name]
                counts[value] = counts.get(value, 0) + here
                if node.name == pod.node.name:
                    beside = here
            least = min(counts.values()) if len(counts) >= term.min_domains else 0
            if counts[pod.node.labels[key]] - least > term.max_skew:
                return False
            few = term.min_domains > 1 and term.honors_affinity
            if few and beside > term.max_skew:
                return False
        return True

    def _counts(self, node: NodePart, member: MemberPart, term: SpreadTerm) -> bool:
        if any(s.topology_key not in node.labels for s in member.pod_rules.spread):
            return False
        asks = MemberPart(name="asks")
        if term.honors_affinity:
            asks = MemberPart(
                name="asks",
                node_selector=member.node_selector,
                affinity=member.affinity,
            )
        tolerates = NodePart(name=node.name, labels=node.labels)
        if term.honors_taints:
            tolerates = node
            asks = MemberPart(
                name="asks",
                node_selector=asks.node_selector,
                affinity=asks.affinity,
                tolerations=member.tolerations,
            )
        return self.world.admits(tolerates, asks)


def may_meet(one: Somebody, two: Somebody) -> bool:
    """Say whether two pods may both be where they are, as to ports and being apart."""
    if one.node.name == two.node.name and _ports_meet(one, two):
        return False
    return not _repels(one, two) and not _repels(two, one)


def _ports_meet(one: Somebody, two: Somebody) -> bool:
    every = "0.0.0.0"  # noqa: S104  # what a host port without an address means
    return any(
        (a.port, a.protocol) == (b.port, b.protocol)
        and (every in (a.ip, b.ip) or a.ip == b.ip)
        for a in one.rules.ports
        for b in two.rules.ports
    )


def _repels(one: Somebody, two: Somebody) -> bool:
    for term in one.rules.apart:
        here = one.node.labels.get(term.topology_key)
        there = two.node.labels.get(term.topology_key)
        if here is not None and here == there and _mean(term, two):
            return True
    return False


def _all_mean(terms: tuple[PodTerm, ...], pod: Somebody) -> bool:
    return bool(terms) and all(_mean(term, pod) for term in terms)


def _mean(term: PodTerm, pod: Somebody) -> bool:
    named = {"kubernetes.io/metadata.name": pod.namespace}
    there = pod.namespace in term.namespaces or _chosen(term.namespace_selector, named)
    return there and _chosen(term.selector, pod.labels)


def _chosen(selector: object, labels: dict[str, str]) -> bool:
    if not isinstance(selector, tuple):
        return False
    for said in selector:
        value = labels.get(said.key)
        if said.operator == "In" and value not in said.values:
            return False
        if said.operator == "NotIn" and value in said.values:
            return False
        if said.operator in ("Exists", "DoesNotExist") and (
            (value is None) is (said.operator == "Exists")
        ):
            return False
    return True
