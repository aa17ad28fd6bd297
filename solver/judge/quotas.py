"""What queues may hold: no more than their quotas and what they borrow, counted anew.

What is given is added up by ClusterQueue, flavor and resource, and passed on to cohorts
as far as it is more than a queue keeps for itself. Nobody of the batch may add to what
is used beyond a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from solver.decision import Decision, GangDecision
from solver.judge.facts import Violations
from solver.problem.gangs import GangPart, QueuePart, RequestPart, SubrequestPart
from solver.problem.problem import Problem, QuotaPart

_Where = tuple[bool, str, str, str]
"""Cohort or not, name, flavor, resource."""


def quotas_are_kept(problem: Problem, decision: Decision) -> Violations:
    """No ClusterQueue or Cohort gets more than its quotas let it have.

    A device counts as 1, or as what is asked of a capacity; admin access takes nothing.
    """
    if not problem.quotas:
        return
    parts = {(q.is_cohort, q.name, q.flavor, q.resource): q for q in problem.quotas}
    given = Counter[_Where]()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if gang.queue is not None and decided.members:
            for resource, amount in _count_given(gang, gang.queue, decided).items():
                flavor = gang.queue.flavors.get(resource, "")
                where = (False, gang.queue.name, flavor, resource)
                given[where] += amount
                if where not in parts:
                    yield (
                        f"quotaKept: ClusterQueue {gang.queue.name} has no quota of "
                        f"{resource} in flavor {flavor!r}"
                    )
    # From the queues up: what a node keeps for itself is no matter of its cohort.
    for where in sorted(parts, key=lambda each: (-_count_above(parts, each), each)):
        quota, more = parts[where], given[where]
        yield from _judge_quota(quota, more)
        given[_cohort_of(quota)] += _pass_on(quota, more)


def _cohort_of(quota: QuotaPart) -> _Where:
    return (True, quota.parent, quota.flavor, quota.resource)


def _count_above(parts: dict[_Where, QuotaPart], where: _Where) -> int:
    above = 0
    while where in parts and above <= len(parts):
        where, above = _cohort_of(parts[where]), above + 1
    return above


def _judge_quota(quota: QuotaPart, more: int) -> Iterator[str]:
    most = quota.quota
    if quota.parent:
        limit = quota.borrowing_limit
        if limit is None:
            return
        most += limit
    if more > 0 and quota.used + more > most:
        what = "Cohort" if quota.is_cohort else "ClusterQueue"
        yield (
            f"quotaKept: {what} {quota.name} would hold {quota.used + more} of {most} "
            f"{quota.resource} in flavor {quota.flavor}"
        )


def _pass_on(quota: QuotaPart, more: int) -> int:
    """Return by how much the cohort of a node uses more when the node does."""
    kept = 0
    if quota.lending_limit is not None:
        kept = max(quota.quota - quota.lending_limit, 0)
    return max(quota.used + more - kept, 0) - max(quota.used - kept, 0)


def _count_given(
    gang: GangPart, queue: QueuePart, decided: GangDecision
) -> Counter[str]:
    total, seen = Counter[str](), set[str]()
    members = {member.name: member for member in gang.members}
    for pod in decided.members:
        member = members.get(pod.member)
        if member is None:
            continue  # said of the pod itself
        total.update({r: a for r, a in member.resources.items() if r != "pods"})
        if queue.counts_pods:
            total["pods"] += member.resources.get("pods", 1)
        for claim, said in zip(member.claims, pod.claims, strict=False):
            if claim.claim_name and claim.claim_name in seen:
                continue
            seen.add(claim.claim_name)
            for result in said.allocation.devices.results:
                asked = _find_asked(claim.requests, result.request)
                if asked is not None and not result.admin_access:
                    total[queue.classes[asked.device_class]] += _count_one(asked, queue)
    return total


def _find_asked(requests: tuple[RequestPart, ...], name: str) -> SubrequestPart | None:
    """Find the alternative that a result names: `request` or `request/alternative`."""
    own, _, alternative = name.partition("/")
    for request in requests:
        if request.name == own:
            for asked in request.alternatives:
                if asked.name == alternative:
                    return asked
    return None


def _count_one(asked: SubrequestPart, queue: QueuePart) -> int:
    capacity = queue.capacities.get(asked.device_class)
    if capacity is None:
        return 1
    _, _, short = capacity.partition("/")
    for name, amount in asked.capacity.items():
        if name in (capacity, short):
            return max(-(-amount.nano // 10**9), 0)
    return 0
