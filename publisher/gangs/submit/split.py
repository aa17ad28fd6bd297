"""Which pods that wait are asked for together.

A gang that begins is one. Pods that join one that runs wait for no others than they
must: what replaces others comes pod by pod, growth member by member and group by group.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.gang import AvoidedNode, Gang
from contracts.gang_rules import GangTopology
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.members import group_connected
from contracts.workload import Pod
from publisher.gangs.members import member_name_of
from publisher.gangs.running.growth_rules import number_of
from publisher.gangs.submit.company import ALONE, Company
from publisher.gangs.submit.completeness import find_shortage, is_of_another
from publisher.gangs.submit.readiness import NotReady
from publisher.gangs.submit.rules import find_rules
from publisher.gangs.view import View, claim_keys

_TOGETHER = ""
"""No claim's key."""


class UnsubmittedPods(Struct, frozen=True, kw_only=True):
    """The pods of one gang that are not submitted yet, and what is known beside."""

    pods: tuple[Pod, ...]
    """Gated, not over."""
    company: Company = ALONE
    """Who makes the gang whole beside these."""
    before: tuple[Pod, ...] = ()
    """Others that join it too: they wait, and are asked for before these."""
    alone: bool = False
    """Whether they do not wait for others: their gates are open already."""
    gang: Gang | None = None
    """The Gang object."""
    generation: int = 1
    """Greater than that of every submission that asked for one of the pods before."""
    avoided: tuple[AvoidedNode, ...] = ()
    """Nodes that they should not go to."""


def split_by_run(pods: Sequence[Pod], view: View) -> Iterator[list[Pod]]:
    """Split waiting pods of a group into those that can be one gang.

    Pods of two runs cannot, nor can pods that come one after the other, nor any with
    those of an object that had the owner's name before.
    """
    runs: dict[str, list[Pod]] = {}
    for pod in pods:
        membership = view.membership(pod)
        owner = view.owners.owner_of(membership)
        is_alone = owner is not None and (
            not owner.is_gang or is_of_another(pod, owner, view)
        )
        key = f"pod {pod.metadata.uid}" if is_alone else membership.run
        runs.setdefault(key, []).append(pod)
    yield from runs.values()


def split_replacements(
    run: Sequence[Pod], view: View, *, gang: Gang | None, company: Company
) -> list[list[Pod]]:
    """Split pods that wait beside `company` into those that are asked for at once.

    A gang that begins is one. Of one that runs each pod of a ReplicaSet comes by
    itself, if that makes the gang whole: a Deployment that rolls ends fewer pods than
    it makes, and goes on only when some of the new ones run. Pods that share a claim
    stay together.
    """
    if not company.ran:
        return [list(run)]

    def ties(pod: Pod) -> list[str]:
        is_single = pod.metadata.controller.kind == "ReplicaSet"
        return [*claim_keys(pod).values(), *(() if is_single else (_TOGETHER,))]

    parts = group_connected(run, ties)
    short = (find_shortage(part, view, gang=gang, company=company) for part in parts)
    return [list(run)] if any(short) else parts


def split_joining(
    pods: Sequence[Pod],
    company: Company,
    gang: Gang | None,
    view: View,
    before: Sequence[Pod] = (),
) -> Iterator[UnsubmittedPods]:
    """Split pods into those that are asked for together beside those that run.

    `before`: others of the gang that wait, and were asked for before these.
    """
    rules: DeclaredRules | NotReady = DeclaredRules()
    if company.ran:
        owner = view.owners.owner_of(view.membership(pods[0]))
        rules = find_rules(pods, gang, owner, None)
    topology = rules.topology if isinstance(rules, DeclaredRules) else ()
    by_member = [list(pods)]
    if company.ran and gang is not None:
        by_member = split_by_member(gang, pods, view)
    parts = [
        part for some in by_member for part in split_by_group(some, topology, view)
    ]
    earlier = list(before)
    for part in parts:
        others = tuple(pod for other in parts if other is not part for pod in other)
        beside = replace(company, stand_ins=(*company.stand_ins, *others))
        yield UnsubmittedPods(
            pods=tuple(part),
            company=beside if others else company,
            before=tuple(earlier) if company.ran else (),
        )
        earlier += part


def split_by_member(gang: Gang, pods: Sequence[Pod], view: View) -> list[list[Pod]]:
    """Split pods that join an elastic gang by member: none waits for another's.

    Those that share a claim without devices are asked for together, and by themselves.
    """
    if not gang.spec.is_elastic:
        return [list(pods)]

    def undecided_claims(pod: Pod) -> Iterator[str]:
        for key in claim_keys(pod).values():
            claim = view.claim(key)
            if claim is not None and claim.allocation is None:
                yield key

    parts: dict[object, list[Pod]] = {}
    for number, tied in enumerate(group_connected(pods, undecided_claims)):
        part = number if len(tied) > 1 else member_name_of(tied[0], gang)
        parts.setdefault(part, []).extend(tied)
    return list(parts.values())


def split_by_group(
    pods: Sequence[Pod], rules: Sequence[GangTopology], view: View
) -> list[list[Pod]]:
    """Split pods that join a gang into those of one group each, where rules have any.

    What binds pods to a group is said of all that are asked for together.
    """
    sizes = [rule.group_size for rule in rules if rule.group_size is not None]
    groups: dict[object, list[Pod]] = {}
    for pod in pods:
        number = number_of(pod)
        member = view.membership(pod).member if sizes else ""
        key = (member, *(number and number // size for size in sizes))
        groups.setdefault(key, []).append(pod)
    return list(groups.values())
