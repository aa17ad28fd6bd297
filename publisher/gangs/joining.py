"""Pods that are decided beside pods of their gang that run: its rules hold for both.

What runs is never moved, so rules about labels of nodes become what the new pods ask of
their nodes. Where a rule is about devices of both (`joined_pods`) the solver keeps all
of them. What neither can say waits, by name; no rule is broken. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.device import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.gang import Member
from contracts.gang_rules import GangTopology
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.membership import COMPLETION_INDEX
from contracts.workload import Pod
from publisher.gangs.members import pinned_node_of
from publisher.gangs.patches import narrow_affinity
from publisher.gangs.view import View

POD_INDEX = "apps.kubernetes.io/pod-index"
"""Label of the pods of a StatefulSet: the number that each has for good."""
_BESIDE = "cannot be decided yet beside running pods of the gang"


class JoiningPods:
    """New pods of a gang by member, and those of it that run."""

    def __init__(
        self,
        new: Sequence[tuple[str, Pod]],
        running: Sequence[tuple[str, Pod]],
        view: View,
        before: Sequence[tuple[str, Pod]] = (),
    ) -> None:
        """All as (member, pod); `before` were asked for, and do not run."""
        self._new = new
        self._running = running
        self._view = view
        self._before = before

    def find_first(self, rules: DeclaredRules) -> tuple[Pod, str] | None:
        """Find a pod that must run before these are asked for, and the rule's field.

        Nothing keeps a rule over pods that are decided apart but what already runs: a
        most per domain is counted, a domain is joined.
        """
        new = {member for member, _ in self._new}
        for number, constraint in enumerate(rules.constraints):
            named = {path.partition("/")[0] for path in constraint.requests}
            before = [pod for of, pod in self._before if not named or of in named]
            if constraint.scope != "Pod" and before and (not named or named & new):
                return before[0], f"spec.constraints[{number}]"
        for number, rule in enumerate(rules.topology):
            if rule.mode != "Required" or not any(map(rule.is_about, new)):
                continue
            before = [pod for of, pod in self._before if rule.is_about(of)]
            if before and not self._is_kept_apart(rule, before):
                return before[0], f"spec.topology[{number}]"
        return None

    def _is_kept_apart(self, rule: GangTopology, before: Sequence[Pod]) -> bool:
        """Whether a rule is kept though others are decided at the same time."""
        if rule.max_per_domain is not None:
            return False
        if rule.group_size is None:
            return any(rule.is_about(of) for of, _ in self._running)
        size = rule.group_size

        def list_groups(pods: Iterable[Pod]) -> set[int | None]:
            numbers = map(_number_of, pods)
            return {None if number is None else number // size for number in numbers}

        both = list_groups(pod for _, pod in self._new) & list_groups(before)
        return both <= list_groups(
            pod for of, pod in self._running if rule.is_about(of)
        )

    def narrow(
        self, members: Sequence[Member], rules: DeclaredRules
    ) -> tuple[Member, ...] | Reason:
        """Ask of the nodes of these members what the rules leave to them."""
        narrowed = []
        for member in members:
            affinity = member.node.affinity
            for number, rule in enumerate(rules.topology):
                if rule.mode != "Required" or not rule.is_about(member.name):
                    continue
                selector = self._find_selector(rule, member.name, number)
                if isinstance(selector, Reason):
                    return selector
                if selector is not None:
                    affinity = narrow_affinity(affinity, selector)
            node = replace(member.node, affinity=affinity)
            narrowed.append(replace(member, node=node))
        return tuple(narrowed)

    def _refuse(self, field: str) -> Reason:
        name = self._new[0][1].metadata.name
        return Reason(
            rule=Rule.NOT_MODELLED, subject=name, field=field, message=_BESIDE
        )

    def _find_selector(
        self, rule: GangTopology, member: str, number: int
    ) -> NodeSelector | Reason | None:
        """Say on which nodes pods of a member keep a rule; None: on any."""
        old = [pod for of, pod in self._running if rule.is_about(of)]
        terms: list[NodeSelectorRequirement] = []
        if rule.max_per_domain is not None:
            coming = sum(rule.is_about(of) for of, _ in self._new)
            terms += self._leave_full(rule, old, coming)
        if rule.group_size is not None:
            group = self._find_group(rule.group_size, member)
            if group is None:
                return self._refuse(f"spec.topology[{number}].groupSize")
            terms += self._join(rule, group)
        elif rule.max_per_domain is None:
            terms += self._join(rule, old)
        if not terms:
            return None
        term = NodeSelectorTerm(match_expressions=tuple(terms))
        return NodeSelector(node_selector_terms=(term,))

    def _join(
        self, rule: GangTopology, pods: Sequence[Pod]
    ) -> Iterator[NodeSelectorRequirement]:
        """Require the domain of pods that run."""
        domains = tuple(sorted(self._domains(rule, pods)))
        if domains:
            yield NodeSelectorRequirement(key=rule.key, operator="In", values=domains)

    def _leave_full(
        self, rule: GangTopology, pods: Sequence[Pod], coming: int
    ) -> Iterator[NodeSelectorRequirement]:
        """Leave out domains that have no room for all that come."""
        most = rule.max_per_domain or 0
        wanted = min(coming, most)
        domains = self._domains(rule, pods)
        full = tuple(sorted(d for d, count in domains.items() if count + wanted > most))
        if full:
            yield NodeSelectorRequirement(key=rule.key, operator="NotIn", values=full)

    def _domains(self, rule: GangTopology, pods: Iterable[Pod]) -> Counter[str]:
        domains: Counter[str] = Counter()
        for pod in pods:
            node = pod.spec.node_name or pinned_node_of(pod)
            value = self._view.nodes.labels(node).get(rule.key)
            if value is not None:
                domains[value] += 1
        return domains

    def _find_group(self, size: int, member: str) -> list[Pod] | None:
        """List the running pods of the one group that the new ones are of.

        None: the pods have no numbers of their own, or are of several groups.
        """
        new = {_number_of(pod) for of, pod in self._new if of == member}
        old = {_number_of(pod): pod for of, pod in self._running if of == member}
        groups = {None if number is None else number // size for number in new}
        if len(groups) != 1 or None in groups or None in old:
            return None
        (group,) = groups
        return [pod for number, pod in old.items() if number // size == group]  # type: ignore[operator]  # none is None


def split_by_group(
    pods: Sequence[Pod], rules: Sequence[GangTopology], view: View
) -> list[list[Pod]]:
    """Split pods that join a gang into those of one group each, where rules have any.

    What binds pods to a group is said of all that are asked for together.
    """
    sizes = [rule.group_size for rule in rules if rule.group_size is not None]
    groups: dict[object, list[Pod]] = {}
    for pod in pods:
        number = _number_of(pod)
        member = view.membership(pod).member if sizes else ""
        key = (member, *(number and number // size for size in sizes))
        groups.setdefault(key, []).append(pod)
    return list(groups.values())


def _number_of(pod: Pod) -> int | None:
    """Return the number that whoever makes a pod gives it for good; None: none."""
    meta = pod.metadata
    for text in (
        meta.labels.get(POD_INDEX),
        meta.labels.get(COMPLETION_INDEX),
        meta.annotations.get(COMPLETION_INDEX),
    ):
        if text and text.isascii() and text.isdecimal() and len(text) < len("10000"):
            return int(text)
    return None
