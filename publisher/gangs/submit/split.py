"""Decides which waiting pods are submitted together.

A gang that begins is submitted as one. When it runs, more pods wait for as few others
as possible: replacements come one by one, growth member by member and group by group.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.gang import AvoidedNode
from contracts.gang_rules import GangTopology
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.members import group_connected
from contracts.workload import Pod
from publisher.gangs.context import PlanContext
from publisher.gangs.members import default_member_of
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.growth_rules import number_of
from publisher.gangs.sizes import read_sizes
from publisher.gangs.submit.company import ALONE, Company, find_company
from publisher.gangs.submit.completeness import (
    count_roles,
    find_shortage,
    is_of_another,
    list_run,
)
from publisher.gangs.submit.joined_groups import split_core, split_parts, tree_of
from publisher.gangs.submit.rules import find_rules
from publisher.gangs.view import claim_keys

_TOGETHER = ""
"""No claim's key."""


class UnsubmittedGang(Struct, frozen=True, kw_only=True):
    """Pods that are asked for together, and what is known beside them."""

    pods: tuple[Pod, ...]
    """They wait at our gate, but for displaced ones."""
    company: Company = ALONE
    """Who makes the gang whole beside these."""
    before: tuple[Pod, ...] = ()
    """Others by which it grows too: they wait, and are asked for before these."""
    is_displaced: bool = False
    """Their gates are open already: they wait for no others, and keep their nodes."""
    generation: int = 1
    """Greater than that of every submission that asked for one of the pods before."""
    avoided: tuple[AvoidedNode, ...] = ()
    """Nodes that they should not go to."""
    restores: int = 0
    """So many pods the gang has again with these; 0: they take nobody's place."""

    @property
    def begins(self) -> bool:
        """True if these pods are the whole gang."""
        return not self.company.count and not self.is_displaced


def split_waiting(
    waiting: Sequence[Pod],
    context: PlanContext,
    *,
    leaving: Container[str],
    records: Sequence[PodGangRecord],
    asked: Collection[str],
    held: Collection[str],
) -> Iterator[UnsubmittedGang]:
    """Split pods that nobody asked for into those that are asked for together.

    `leaving`: uids of pods that will be deleted. `asked`, `held`: as in `find_company`.
    """
    stay = [pod for pod in context.pods if pod.metadata.uid not in leaving]
    for run in split_by_run(waiting, context):
        same_run = list_run(stay, run, context)
        company = find_company(same_run, run, asked, records, held)
        before = [pod for pod in same_run if pod.metadata.uid in asked]
        lost = company.lost
        for part in split_replacements(run, company, context):
            for unsubmitted in _split_growth(part, company, context, before):
                count = len(unsubmitted.pods)
                restores = company.size if count <= lost else 0
                lost -= count if restores else 0
                yield replace(unsubmitted, restores=restores)
            before += part


def split_by_run(pods: Sequence[Pod], context: PlanContext) -> Iterator[list[Pod]]:
    """Split waiting pods of a group into those that can be one gang.

    Pods of two runs cannot, nor can pods that are made one after the other, nor pods of
    a former object of the owner's name.
    """
    runs: dict[str, list[Pod]] = {}
    for pod in pods:
        owner = context.owner_of(pod)
        is_alone = owner is not None and (
            not owner.is_gang or is_of_another(pod, owner, context)
        )
        run = context.membership(pod).run
        key = f"pod {pod.metadata.uid}" if is_alone else run
        runs.setdefault(key, []).append(pod)
    yield from runs.values()


def split_replacements(
    run: Sequence[Pod], company: Company, context: PlanContext
) -> list[list[Pod]]:
    """Split pods that wait beside `company` into those that are asked for at once.

    A gang that begins is one. Beside running pods each pod of a ReplicaSet is asked for
    by itself, if that makes the gang whole: a Deployment that rolls out ends fewer pods
    than it makes, and goes on only when some new ones run. Pods that share a claim stay
    together.
    """
    if not company.ran:
        return [list(run)]

    def ties(pod: Pod) -> list[str]:
        is_single = pod.metadata.controller.kind == "ReplicaSet"
        return [*claim_keys(pod).values(), *(() if is_single else (_TOGETHER,))]

    parts = group_connected(run, ties)
    is_short = any(find_shortage(part, context, company) for part in parts)
    return [list(run)] if is_short else parts


def _split_growth(
    pods: Sequence[Pod],
    company: Company,
    context: PlanContext,
    before: Sequence[Pod],
) -> Iterator[UnsubmittedGang]:
    """Split pods by which a running gang grows: by member, then by group.

    `before`: others of the gang that wait, and were asked for before these.
    """
    if not company.ran:
        yield from _split_beginning(pods, company, context)
        return
    gang = context.gang
    rules = find_rules(pods, gang, context.owner_of(pods[0]), None)
    topology = rules.topology if isinstance(rules, DeclaredRules) else ()
    by_member = _split_by_member(pods, company, context)
    parts = [
        part
        for some in by_member
        for part in split_pods_by_group(some, topology, context)
    ]
    earlier = list(before)
    for part in parts:
        others = tuple(pod for other in parts if other is not part for pod in other)
        yield UnsubmittedGang(
            pods=tuple(part),
            company=replace(company, stand_ins=(*company.stand_ins, *others)),
            before=tuple(earlier),
        )
        earlier += part


def _split_beginning(
    pods: Sequence[Pod], company: Company, context: PlanContext
) -> Iterator[UnsubmittedGang]:
    """Split pods of a gang that begins: groups that it does not need come after."""
    owner, tree = context.owner_of(pods[0]), tree_of(pods, context)
    first, rest = list(pods), list[Pod]()
    if owner is not None and tree is not None:
        there = count_roles(pods, owner, context, company)
        first, rest = split_core(pods, tree, there, context)
    yield UnsubmittedGang(pods=tuple(first), company=company)
    if rest:
        held = company.held + len(first)
        yield UnsubmittedGang(pods=tuple(rest), company=replace(company, held=held))


def _split_by_member(
    pods: Sequence[Pod], company: Company, context: PlanContext
) -> list[list[Pod]]:
    """Split pods by which an elastic gang grows: none waits for another member's.

    Those that share a claim without devices are asked for together, and by themselves.
    """

    def undecided_claims(pod: Pod) -> Iterator[str]:
        for key in claim_keys(pod).values():
            claim = context.view.claim(key)
            if claim is not None and claim.allocation is None:
                yield key

    tree = tree_of(pods, context)
    if tree is not None:
        return split_parts(pods, tree, company.ran, undecided_claims, context)
    sizes = read_sizes(context, pods[0])
    if sizes is None or not sizes.is_elastic:
        return [list(pods)]
    unnamed = default_member_of(context.gang)
    parts: dict[object, list[Pod]] = {}
    for number, tied in enumerate(group_connected(pods, undecided_claims)):
        name = context.membership(tied[0]).member or unnamed
        part = number if len(tied) > 1 else name
        parts.setdefault(part, []).extend(tied)
    return list(parts.values())


def split_pods_by_group(
    pods: Sequence[Pod], rules: Sequence[GangTopology], context: PlanContext
) -> list[list[Pod]]:
    """Split pods that a running gang grows by into one submission for each group.

    `rules` of which none has groups make none. Pods that are asked for together are
    bound to one group; where pods are even over domains, each goes alone to where there
    are fewest.
    """
    sizes = [rule.size for rule in rules if rule.size is not None]
    groups: dict[object, list[Pod]] = {}
    for pod in pods:
        number = number_of(pod)
        member = context.membership(pod).member if rules else ""
        alone = any(rule.is_even and rule.is_about(member) for rule in rules)
        group = (number and number // size for size in sizes)
        key = (member if sizes else "", *group, pod.metadata.uid if alone else "")
        groups.setdefault(key, []).append(pod)
    return list(groups.values())
