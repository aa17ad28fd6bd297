"""The rules between pods while they are resolved: what each crowd has come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.allocation import Reason, Rule
from contracts.pods.pod_rules import PodTerm, Requirements, SpreadTerm
from solver.kinds.affinity.surroundings import Crowd, Surroundings, find_crowds
from solver.problem.affinity.rules import (
    CountedRule,
    DomainRule,
    NodeSet,
    ResolvedRules,
    Role,
    Take,
)
from solver.problem.problem import Problem


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
        """Let a crowd only onto some nodes."""
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
        """Let a crowd be something to a rule."""
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
        """Go through the crowds with all that was resolved."""
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
    """Name whom a term means, as `app=web by topology.kubernetes.io/zone`."""
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
