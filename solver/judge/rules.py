"""Every rule of a decision again, in plain Python, on its own.

Looks at the Problem and the Decision only; knows no engine, no kinds, no counts.
A violation names the rule and what breaks it. Here: whole gangs and the value. The
other rules, each in its file: pods with their claims (`pods.py`), claims that several
pods share (`sharing.py`), what nodes ask of pods (`nodes.py`), what pods ask of each
other (`affinity.py`), what gangs ask of their pods (`topology.py`), single devices
(`devices.py`), how uses of devices get along (`uses.py`), what namespaces hold
(`quotas.py`), slack value (`slack.py`), what is written down (`results.py`).
"""

from __future__ import annotations

from collections import Counter

from contracts.ids import NodeName
from solver.decision import Decision
from solver.judge.affinity import pods_agree
from solver.judge.facts import Facts, Violations
from solver.judge.nodes import nodes_suffice
from solver.judge.pods import PodJudge
from solver.judge.quotas import quotas_are_kept
from solver.judge.sharing import SharedClaims, list_allocations
from solver.judge.slack import value_lost
from solver.judge.topology import (
    GangPod,
    count_extra,
    gang_is_whole,
    judge_gang,
    placed_pod,
    preference_cost,
    standing_pods,
)
from solver.judge.uses import Use, judge_uses
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.tiers import Tier


def judge(problem: Problem, decision: Decision) -> tuple[str, ...]:
    """List what is wrong with a decision; empty: it is right."""
    facts, uses, ranks, cost = Facts(problem), list[Use](), 0, 0
    violations = list(_gangs_answered(problem, decision))
    # First gang by gang and pod by pod ...
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if not decided.members:
            continue
        violations.extend(gang_is_whole(gang, decided.members))
        shared, placed = SharedClaims(facts, gang, decided.members), list[GangPod]()
        violations.extend(shared.violations())
        uses.extend(shared.uses)
        ranks += shared.rank
        is_ruled = bool(gang.constraints or gang.topology)
        for member in decided.members:
            pod = PodJudge(facts, gang, member, shared=shared.names)
            violations.extend(pod.violations())
            uses.extend(pod.uses)
            ranks += pod.rank
            if is_ruled and pod.part is not None:
                node = facts.find_node(member.node)
                had = (*pod.uses, *shared.uses_of(member))
                placed.append(placed_pod(pod.part, member.index, node, had))
        # Rules hold over these pods and those that have their place together.
        standing = standing_pods(facts, gang)
        violations.extend(judge_gang(facts, gang, placed, standing))
        cost += preference_cost(facts, gang, [*standing, *placed])
        cost -= preference_cost(facts, gang, standing)
    # ... then what pods have together, and what all of it is worth.
    violations.extend(_claims_are_given_once(problem, decision))
    violations.extend(_shares_differ(decision))
    violations.extend(_value_is_true(problem, decision, ranks))
    violations.extend(_preferences_are_counted(problem, decision, cost))
    violations.extend(_later_values_are_true(facts, decision, uses))
    violations.extend(judge_uses(facts, uses))
    violations.extend(quotas_are_kept(problem, decision))
    violations.extend(nodes_suffice(facts, problem, decision))
    violations.extend(pods_agree(facts, problem, decision))
    return tuple(violations)


def _gangs_answered(problem: Problem, decision: Decision) -> Violations:
    """Each gang of the problem has one answer, in order: members or reasons."""
    asked = [(gang.namespace, gang.uid) for gang in problem.gangs]
    answered = [(gang.namespace, gang.uid) for gang in decision.gangs]
    if asked != answered:
        yield "gangsAnswered: the decision is not about the gangs of the problem"
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.reasons and decided.members:
            yield f"gangsAnswered: {gang.name} has members and reasons"
        if not decided.reasons and not decided.members:
            yield f"gangsAnswered: {gang.name} has neither members nor reasons"
        if gang.refused and decided.members:
            yield f"gangsAnswered: {gang.name} was refused beforehand"


def _value_is_true(problem: Problem, decision: Decision, ranks: int) -> Violations:
    """Each tier says what the answer is worth, and no bound is past its value."""
    weight_in, extra_in = Counter[int](), Counter[int]()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.members:
            weight_in[gang.priority] += gang.weight
            extra_in[gang.priority] += count_extra(gang, decided.members)
    valued = {tier.priority for tier in decision.objective if tier.tier is Tier.GANGS}
    for priority in sorted({g.priority for g in problem.gangs if not g.refused}):
        if priority not in valued:
            yield f"valueIsTrue: priority {priority} has no value"
    extras = {tier.priority for tier in decision.objective if tier.tier is Tier.EXTRA}
    is_asked = problem.parameters.last_tier is not Tier.GANGS
    for priority in sorted(p for p, extra in extra_in.items() if extra and is_asked):
        if priority not in extras:
            yield f"valueIsTrue: priority {priority} has extra pods without value"
    for tier in decision.objective:
        if tier.tier is Tier.GANGS and tier.value != weight_in[tier.priority or 0]:
            yield f"valueIsTrue: priority {tier.priority} has not value {tier.value}"
        if tier.tier is Tier.EXTRA and tier.value != extra_in[tier.priority or 0]:
            yield f"valueIsTrue: priority {tier.priority} has not {tier.value} extra"
        if tier.tier is Tier.ALTERNATIVES and tier.value != ranks:
            yield f"valueIsTrue: alternatives have not value {tier.value}"
        if tier.bound is None:
            continue
        is_more = tier.tier in (Tier.GANGS, Tier.EXTRA)
        if tier.bound < tier.value if is_more else tier.bound > tier.value:
            yield f"valueIsTrue: bound {tier.bound} is past value {tier.value}"


def _preferences_are_counted(
    problem: Problem, decision: Decision, cost: int
) -> Violations:
    """What preferences about topology cost is what the tier says, if there are any."""
    said = [tier.value for tier in decision.objective if tier.tier is Tier.TOPOLOGY]
    is_asked = problem.parameters.last_tier.place >= Tier.TOPOLOGY.place and any(
        topology.mode == "Preferred" or topology.group_size == "Even"
        for gang in problem.gangs
        if not gang.refused
        for topology in gang.topology
    )
    if said != ([cost] if is_asked else []):
        yield f"valueIsTrue: preferences cost {cost}, not {said}"


def _later_values_are_true(
    facts: Facts, decision: Decision, uses: list[Use]
) -> Violations:
    """The slack value lost and the nodes touched are what the tiers say."""
    problem, pods = facts.problem, list[tuple[NodeName, MemberPart]]()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        members = {member.name: member for member in gang.members}
        for pod in decided.members:
            if pod.member in members:
                pods.append((pod.node, members[pod.member]))
    said = {tier.tier: tier.value for tier in decision.objective}
    last = problem.parameters.last_tier.place
    if last >= Tier.LEFTOVER.place and problem.expected:
        lost = value_lost(facts, pods, uses)
        if said.get(Tier.LEFTOVER) != lost:
            found = said.get(Tier.LEFTOVER)
            yield f"valueIsTrue: {lost} is lost of what is left, not {found}"
    if last >= Tier.NODES.place:
        nodes = len({node for node, _ in pods})
        if said.get(Tier.NODES) != nodes:
            yield f"valueIsTrue: {nodes} nodes are touched, not {said.get(Tier.NODES)}"


def _claims_are_given_once(problem: Problem, decision: Decision) -> Violations:
    """A ResourceClaim that exists by name is one gang's: it is allocated once."""
    owners: dict[tuple[str, str], GangPart] = {}
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        placed = {pod.member for pod in decided.members}
        named = {
            claim.claim_name
            for member in gang.members
            for claim in member.claims
            if member.name in placed and claim.claim_name
        }
        for name in sorted(named):
            owner = owners.setdefault((gang.namespace or "default", name), gang)
            if owner is not gang:
                yield f"claimGivenOnce: {name} is {owner.uid}'s, and {gang.uid}'s"


def _shares_differ(decision: Decision) -> Violations:
    """No share id is given twice."""
    counts = Counter(
        result.share_id
        for gang in decision.gangs
        for allocation in list_allocations(gang)
        for result in allocation.devices.results
        if result.share_id is not None
    )
    for share_id, count in counts.items():
        if count > 1:
            yield f"shareId: {share_id} is given {count} times"
