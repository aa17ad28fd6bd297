"""Crowds: members that are alike to all rules between pods; and what rules ask of each.

Knows no device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.codec import encode
from contracts.device import NodeSelector
from contracts.gang import NodeToleration
from contracts.ids import Namespace
from contracts.pods.node_resources import PODS
from contracts.pods.pod_rules import (
    PodRules,
    PodTerm,
    Requirements,
    SpreadTerm,
    means,
    selects,
)
from solver.kinds.affinity.surroundings import Surroundings, all_hold
from solver.problem.affinity.rules import (
    CountedRule,
    DomainRule,
    NodeSet,
    ResolvedRules,
    Role,
    Take,
)
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem


class Crowd(Struct, frozen=True):
    """Members that are alike to all rules between pods."""

    namespace: Namespace
    labels: dict[str, str]
    varying: tuple[str, ...]
    rules: PodRules
    node_selector: tuple[tuple[str, str], ...]
    affinity: NodeSelector | None
    tolerations: tuple[NodeToleration, ...]
    pods: int
    """All of them in the batch."""
    places: tuple[tuple[int, int], ...]
    """(gang, member) in the Problem."""

    def is_meant_by(self, term: PodTerm) -> bool | None:
        """True if a term matches these pods; None: unknown."""
        return means(term, self.namespace, self.labels, self.varying)

    def is_meant_by_all(self, terms: Iterable[PodTerm]) -> bool | None:
        """True if all terms match these pods; None: unknown."""
        return all_hold(self.is_meant_by(term) for term in terms)

    def is_counted_by(self, namespace: str, term: SpreadTerm) -> bool | None:
        """True if a rule of spread counts these pods; None: unknown."""
        if namespace != self.namespace:
            return False
        return selects(term.selector, self.labels, self.varying)


def find_crowds(gangs: Iterable[GangPart]) -> tuple[Crowd, ...]:
    """Put the members of gangs that are tried into crowds, in their order."""
    places: dict[bytes, list[tuple[int, int]]] = {}
    members: dict[bytes, tuple[Namespace, MemberPart]] = {}
    pods: dict[bytes, int] = {}
    for number, gang in enumerate(gangs):
        for index, member in enumerate(() if gang.refused else gang.members):
            key = encode(
                [
                    gang.namespace,
                    member.labels,
                    member.varying_labels,
                    member.pod_rules,
                    member.node_selector,
                    member.affinity,
                    member.tolerations,
                ]
            )
            members.setdefault(key, (gang.namespace, member))
            places.setdefault(key, []).append((number, index))
            count = member.count * member.resources.get(PODS, 1)
            pods[key] = pods.get(key, 0) + count
    return tuple(
        Crowd(
            namespace,
            member.labels,
            member.varying_labels,
            member.pod_rules,
            tuple(sorted(member.node_selector.items())),
            member.affinity,
            member.tolerations,
            pods[key],
            tuple(places[key]),
        )
        for key, (namespace, member) in members.items()
    )


class Resolution:
    """Collects what rules ask of the crowds of a batch."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.around = Surroundings(problem)
        self.crowds = find_crowds(problem.gangs)
        self._sets: dict[int, list[NodeSet]] = {}
        self._takes: dict[int, list[Take]] = {}
        self._roles: dict[int, dict[DomainRule, int]] = {}
        self._refused: dict[int, Reason] = {}

    def restrict(self, crowd: Crowd, nodes: NodeSet) -> None:
        """Restrict a crowd to some nodes."""
        self._sets.setdefault(id(crowd), []).append(nodes)

    def keep_out(
        self, crowd: Crowd, key: str, values: Iterable[str], because: tuple[Rule, str]
    ) -> None:
        """Keep a crowd out of some domains; `because` of a rule, in words."""
        rule, why = because
        closed = NodeSet(key, frozenset(values), False, False, rule, why)
        self.restrict(crowd, closed)

    def take(self, crowd: Crowd, rule: CountedRule, amount: int) -> None:
        """Let each pod of a crowd take so much of what is counted."""
        self._takes.setdefault(id(crowd), []).append(Take(rule, amount))

    def play(self, crowd: Crowd, rule: DomainRule, bits: int) -> None:
        """Give a crowd a role in a rule: bits of CARRIER, MEANT and ANCHOR."""
        roles = self._roles.setdefault(id(crowd), {})
        roles[rule] = roles.get(rule, 0) | bits

    def refuse(self, crowd: Crowd, field: str, message: str) -> None:
        """Refuse the gangs of a crowd, for now."""
        reason = Reason(
            rule=Rule.NOT_MODELLED,
            field=f"spec.members[].node.{field}",
            message=message,
        )
        self._refused.setdefault(id(crowd), reason)

    def results(self) -> Iterator[tuple[Crowd, ResolvedRules, Reason | None]]:
        """Yield the crowds, with what was resolved and why each is refused."""
        for crowd in self.crowds:
            number = id(crowd)
            roles = self._roles.get(number, {})
            resolved = ResolvedRules(
                node_sets=tuple(dict.fromkeys(self._sets.get(number, ()))),
                takes=tuple(self._takes.get(number, ())),
                roles=tuple(Role(rule, bits) for rule, bits in roles.items()),
            )
            yield crowd, resolved, self._refused.get(number)


def describe(term: PodTerm | SpreadTerm) -> str:
    """Describe the pods that a term means: `app=web by topology.kubernetes.io/zone`."""
    return f"{_describe_selector(term)} by {term.topology_key}"


def _describe_selector(term: PodTerm | SpreadTerm) -> str:
    selector = _describe_requirements(term.selector)
    if isinstance(term, SpreadTerm):
        return selector
    where = ",".join(term.namespaces)
    if term.namespace_selector is not None:
        also = _describe_requirements(term.namespace_selector)
        where = f"{where},{also}" if where else also
    return f"{selector} in {where}"


def _describe_requirements(selector: Requirements | None) -> str:
    if selector is None:
        return "no pod"
    words = []
    for said in selector:
        if said.operator == "In" and len(said.values) == 1:
            words.append(f"{said.key}={said.values[0]}")
        elif said.values:
            words.append(f"{said.key} {said.operator} {'|'.join(said.values)}")
        else:
            words.append(f"{said.key} {said.operator}")
    return ",".join(words) or "every pod"
