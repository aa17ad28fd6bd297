"""Whether what was asked for can still be had as it was asked for.

A submission says which claims want devices, and binds pods to where their other claims
have some. If pods or claims have changed since, no decision helps: it is given up, and
the pods are asked for anew. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaimSpec
from contracts.errors import DecodeError
from contracts.gang import Member
from contracts.ids import NodeName
from contracts.kubernetes.defaults import default_claim_spec
from contracts.messages import Place
from contracts.pods.node_affinity import read_pinned_node
from contracts.workload import Pod
from publisher.gangs.claims import (
    MOST_RESERVED,
    is_same,
    only_node,
    reserved_uids,
)
from publisher.gangs.plan_claims import Assignment
from publisher.gangs.rollback import is_leftover
from publisher.gangs.situation import Situation, Standing
from publisher.gangs.view import claim_keys, is_over, uids_of
from publisher.gangs.void_marks import is_void


def fault_of(
    situation: Situation, standing: Standing, assignments: Iterable[Assignment]
) -> str:
    """Say why a submission whose gates are closed is of no use; empty: it is.

    `assignments` are those of the decision that counts, if there is one.
    """
    message = standing.submission.submission
    if message is None:
        return ""
    if any(is_void(pod, message.uid) for pod in standing.waiting):
        return "it was given up"
    displaced = [pod for pod in standing.displaced if not is_over(pod)]
    there = displaced or standing.waiting
    wanted = len(standing.submission.pods)
    if len(there) < wanted:
        return f"{wanted - len(there)} of {wanted} pods are gone"
    decided = {(item.member, item.index): item for item in assignments}
    for member in message.gang.spec.members:
        for index, place in enumerate(message.places.get(member.name, ())):
            found = decided.get((member.name, index))
            text = fault_of_place(situation, standing, member, place, found)
            if text:
                return text
    return next(
        filter(None, (_stuck(situation, pod, decided.values()) for pod in displaced)),
        "",
    )


def fault_of_place(
    situation: Situation,
    standing: Standing,
    member: Member,
    place: Place,
    assignment: Assignment | None,
) -> str:
    """Say why nobody can give a place what it asked for; empty: somebody can."""
    namespace = situation.group.namespace
    here = standing.by_uid
    pods = [here[ref.uid] for ref in place.pods if ref.uid in here]
    asked = [f"{namespace}/{name}" for name in place.claims]
    decided = dict(() if assignment is None else assignment.claims)
    waiting = standing.waiting_uids
    specs = (claim.spec for claim in member.claims)
    for key, spec in zip(asked, specs, strict=False):
        text = _asked(situation, key, decided.get(key), waiting)
        text = text or _remade(situation, key, spec)
        if text:
            return text
    node = NodeName("") if assignment is None else assignment.node
    others = {key for pod in pods for key in claim_keys(pod).values()} - set(asked)
    for key in sorted(others):
        text = _held_before(situation, key, pods, node)
        if text:
            return text
    return ""


def pinned_to(pod: Pod) -> NodeName:
    """Give the node that a pod is pinned to; empty: none that can be read."""
    try:
        return read_pinned_node(pod.spec.affinity) or NodeName("")
    except DecodeError:
        return NodeName("")


def _asked(
    situation: Situation,
    key: str,
    decided: AllocationResult | None,
    waiting: frozenset[str],
) -> str:
    """Say what is wrong with a claim that wants devices."""
    claim = situation.view.claim(key)
    if claim is None:
        return f"ResourceClaim {key} is gone"
    if claim.metadata.deletion_timestamp:
        return f"ResourceClaim {key} is being deleted"
    held = claim.allocation
    if held is None or is_leftover(key, waiting, situation.view):
        return ""
    if decided is not None and is_same(held, decided):
        return ""
    return f"ResourceClaim {key} was allocated by somebody else"


def _remade(situation: Situation, key: str, spec: ResourceClaimSpec | None) -> str:
    """Say that a claim is another one of the same name (a spec never changes)."""
    claim = situation.view.claim(key)
    if claim is None or spec is None or claim.spec == spec:
        return ""
    if default_claim_spec(claim.spec) == default_claim_spec(spec):
        return ""
    return f"ResourceClaim {key} was made anew and asks for something else"


def _held_before(
    situation: Situation, key: str, pods: Sequence[Pod], node: NodeName
) -> str:
    """Say what is wrong with a claim that had its devices when pods were submitted."""
    claim = situation.view.claim(key)
    if claim is None:
        return f"ResourceClaim {key} is gone"
    held = claim.allocation
    if held is not None:
        where = only_node(held.node_selector)
        if where and node and where != node:
            return f"ResourceClaim {key} is allocated on {where} now"
    if not situation.owns(claim):
        return ""
    if held is None:
        return f"ResourceClaim {key} holds nothing any more"
    if len(reserved_uids(claim) | uids_of(pods)) > MOST_RESERVED:
        return f"ResourceClaim {key} is reserved for {MOST_RESERVED} users already"
    return ""


def _stuck(situation: Situation, pod: Pod, assignments: Iterable[Assignment]) -> str:
    """Say why a pod whose gate is open cannot take what is decided for it."""
    for item in assignments:
        if pod.metadata.uid not in {ref.uid for ref in item.pods}:
            continue
        if item.node != pinned_to(pod):
            return f"pod {pod.metadata.name} is not pinned to {item.node}"
        held = (situation.view.claim(key) for key, _ in item.claims)
        if pod.spec.node_name and any(c and not c.allocation for c in held):
            return f"pod {pod.metadata.name} was bound without its devices"
    return ""
