"""Whether a Gang object and its pods say the same.

Pod by pod, as authors see them: which member, which claims, from which template, asking
for what. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from contracts.gang import Gang, Member, MemberClaim
from contracts.kubernetes.defaults import default_claim_spec
from contracts.names import MEMBER
from contracts.workload import Pod
from publisher.gangs.members import ONLY, Owns
from publisher.gangs.view import View, claim_keys


def unnamed_of(gang: Gang | None) -> str:
    """Name the member of pods without a label: the only one, if it is only one."""
    if gang is not None and len(gang.spec.members) == 1:
        return gang.spec.members[0].name
    return ONLY


def member_name(pod: Pod, gang: Gang | None) -> str:
    """Name the member that a pod is."""
    return pod.metadata.labels.get(MEMBER, "") or unnamed_of(gang)


def difference(
    gang: Gang, pods: Sequence[Pod], view: View, owns: Owns, *, whole: bool
) -> str:
    """Say where a Gang object and its pods differ; empty: nowhere.

    `whole`: these are all pods of the gang, so that their numbers must be right too.
    All claims of the pods exist.
    """
    said = {member.name: member for member in gang.spec.members}
    counts: Counter[str] = Counter()
    for pod in pods:
        name = member_name(pod, gang)
        counts[name] += 1
        if name not in said:
            return f"pod {pod.metadata.name}: the Gang has no member {name}"
        text = _claims_difference(said[name], pod, view, owns)
        if text:
            return f"pod {pod.metadata.name}: {text}"
    for name, member in said.items():
        if whole and counts[name] != member.count:
            return (
                f"member {name}: {member.count} pods wanted, {counts[name]} are there"
            )
    return ""


def _claims_difference(member: Member, pod: Pod, view: View, owns: Owns) -> str:
    wanted = {claim.name: claim for claim in member.claims}
    theirs = {item.name for item in pod.spec.resource_claims}
    ours = set()
    for name, key in claim_keys(pod).items():
        found = view.claim(key)
        if found is not None and owns(found):
            ours.add(name)
    if not ours <= wanted.keys() <= theirs:
        mine = ", ".join(wanted) or "none"
        return f"it has claims {', '.join(sorted(theirs)) or 'none'}, the Gang {mine}"
    for claim in member.claims:
        text = _claim_difference(claim, pod, view)
        if text:
            return f"claim {claim.name} {text}"
    return ""


def _claim_difference(claim: MemberClaim, pod: Pod, view: View) -> str:
    items = {item.name: item for item in pod.spec.resource_claims}
    item = items[claim.name]
    source = item.resource_claim_template_name or item.resource_claim_name
    named = claim.template_name or claim.claim_name
    if named and named != source:
        return f"is from {source}, not {named}"
    key = claim_keys(pod).get(claim.name)
    found = view.claim(key) if key else None
    if claim.spec is None or found is None:
        return ""
    if default_claim_spec(claim.spec) != default_claim_spec(found.spec):
        return "asks for something else than the Gang says"
    return ""
