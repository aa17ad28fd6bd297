"""Compares a Gang object with its pods, as their authors see them.

Pod by pod: which member it is, which claims it has, from which template, asking for
what. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from contracts.counts import counted
from contracts.gang import Gang, Member, MemberClaim
from contracts.kubernetes.defaults import default_claim_spec
from contracts.workload import Pod
from publisher.gangs.context import PlanContext
from publisher.gangs.members import member_name_of
from publisher.gangs.view import View, claim_keys


def find_difference(
    gang: Gang, pods: Sequence[Pod], context: PlanContext, *, whole: bool
) -> str:
    """Return where a Gang object and its pods differ; empty: nowhere.

    `whole`: these are all pods of the gang, so that their numbers must be right too.
    All claims of the pods exist.
    """
    members = {member.name: member for member in gang.spec.members}
    counts: Counter[str] = Counter()
    for pod in pods:
        name = member_name_of(pod, gang)
        counts[name] += 1
        if name not in members:
            return f"pod {pod.metadata.name}: the Gang has no member {name}"
        text = _find_claims_difference(members[name], pod, context)
        if text:
            return f"pod {pod.metadata.name}: {text}"
    for name, member in members.items():
        if whole and not member.least <= counts[name] <= member.count:
            wanted = f"{member.least} to " if member.least < member.count else ""
            return (
                f"member {name}: {wanted}{counted(member.count, 'pod')} wanted, "
                f"{counted(counts[name], 'is there', 'are there')}"
            )
    return ""


def _find_claims_difference(member: Member, pod: Pod, context: PlanContext) -> str:
    of_gang = dict.fromkeys(claim.name for claim in member.claims)
    of_pod = {claim.name for claim in pod.spec.resource_claims}
    owned = set()
    for name, key in claim_keys(pod).items():
        claim = context.view.claim(key)
        if claim is not None and context.owns(claim):
            owned.add(name)
    if not owned <= of_gang.keys() <= of_pod:
        theirs = ", ".join(sorted(of_pod)) or "none"
        return f"it has claims {theirs}, but the Gang {', '.join(of_gang) or 'none'}"
    for member_claim in member.claims:
        text = _find_claim_difference(member_claim, pod, context.view)
        if text:
            return f"claim {member_claim.name} {text}"
    return ""


def _find_claim_difference(member_claim: MemberClaim, pod: Pod, view: View) -> str:
    name = member_claim.name
    of_pod = next(claim for claim in pod.spec.resource_claims if claim.name == name)
    source = of_pod.resource_claim_template_name or of_pod.resource_claim_name
    named = member_claim.template_name or member_claim.claim_name
    if named and named != source:
        return f"is from {source}, not {named}"
    key = claim_keys(pod).get(name)
    claim = view.claim(key) if key else None
    if member_claim.spec is None or claim is None:
        return ""
    if default_claim_spec(member_claim.spec) != default_claim_spec(claim.spec):
        return "differs from what the Gang requests"
    return ""
