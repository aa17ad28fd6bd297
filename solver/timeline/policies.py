"""Who may have to go for whom, as the ClusterQueue of the gang that waits says.

Only gangs of lower priority, whatever the queue says, so that nobody can take back what
was taken. Gangs of other queues only while those borrow what is asked for. Pure.

Source: Kueue's concepts "Preemption" (`spec.preemption` of a ClusterQueue); `Any` and
`LowerOrNewerEqualPriority` count as `LowerPriority`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from contracts.kueue import LOWER_PRIORITY, QueuePreemption
from contracts.lifecycle import GangRecord
from solver.problem.gangs import GangPart
from solver.problem.quota.asked import Asked, count_asked
from solver.problem.quota.tree import Amounts, QuotaLedger, QuotaNode
from solver.snapshot.snapshot import Snapshot
from solver.timeline.candidates import Candidate, age_of, make_candidate, may_end
from solver.timeline.patience import NEVER, line_of, read_terms

_WITHIN = (LOWER_PRIORITY, "LowerOrNewerEqualPriority")
_RECLAIM = (LOWER_PRIORITY, "Any")
"""Whatever else a field says, nobody goes by it."""


def list_allowed(
    snapshot: Snapshot, waits: GangRecord, part: GangPart, now_s: float
) -> list[Candidate]:
    """List the gangs that may have to go for one that waits.

    `part` is that gang, resolved. Whichever of them go, none of another queue goes that
    did not borrow when its turn came.
    """
    if part.queue is None or part.refused:
        return []
    ledger, name = QuotaLedger(snapshot), part.queue.name
    queue, node = snapshot.queues.cluster_queues.get(name), ledger.tree.queues.get(name)
    if queue is None or node is None:
        return []
    policy, asked = queue.spec.preemption, count_asked(part.core, part.queue)
    most = _find_most_in_cohort(policy, ledger, node, asked)
    by_queue = _list_by_queue(snapshot, waits, now_s)
    allowed = by_queue.pop(name, [])
    if policy.within_cluster_queue not in _WITHIN:
        allowed = []
    for other_name, candidates in by_queue.items():
        other = ledger.tree.queues.get(other_name)
        if other is None or other.parent is None or other.path[-1] is not node.path[-1]:
            continue
        low = [c for c in candidates if most is not None and c.priority <= most]
        allowed += _list_borrowing(ledger, other, low, asked)
    return allowed


def is_allowed(snapshot: Snapshot, record: GangRecord, waits: GangRecord) -> bool:
    """True if the queue of a gang that waits still lets it take another one's place.

    What others hold and borrow by now does not count: some may have gone already.
    """
    name, _ = line_of(snapshot, waits)
    queue = snapshot.queues.cluster_queues.get(name)
    quota = None if record.placed is None else record.placed.quota
    if queue is None or quota is None or not may_end(record, waits):
        return False
    policy = queue.spec.preemption
    if read_terms(snapshot, name, NEVER).preemption_delay_s == NEVER:
        return False
    if quota.cluster_queue == name:
        return policy.within_cluster_queue in _WITHIN
    return policy.reclaim_within_cohort in _RECLAIM


def _find_most_in_cohort(
    policy: QueuePreemption, ledger: QuotaLedger, node: QuotaNode, asked: Asked
) -> int | None:
    """Return up to which priority gangs of other queues may go; None: none may."""
    if policy.reclaim_within_cohort not in _RECLAIM:
        return None
    highest = 2**31 - 1
    if not _would_borrow(ledger, node, asked):
        return highest
    borrow = policy.borrow_within_cohort
    if borrow.policy != LOWER_PRIORITY:
        return None
    threshold = borrow.max_priority_threshold
    return highest if threshold is None else threshold


def _would_borrow(ledger: QuotaLedger, node: QuotaNode, asked: Asked) -> bool:
    """True if a queue holds more than its own, of all flavors, with so much more."""
    own, held = Counter[str](), Counter[str](asked)
    for (_, resource), amount in node.subtree.items():
        own[resource] += amount
    for (_, resource), amount in ledger.amounts_of(node).items():
        held[resource] += amount
    return any(held[resource] > own[resource] for resource in asked)


def _list_by_queue(
    snapshot: Snapshot, waits: GangRecord, now_s: float
) -> dict[str, list[Candidate]]:
    """List who could go at all by the ClusterQueue that counts it."""
    # Pods in place of lost ones are asked for beside those that run: a part of a gang.
    parts = filter(is_part, snapshot.waiting.values())
    records = (*snapshot.placed.values(), *parts)
    names = Counter((record.namespace, record.name) for record in records)
    found: dict[str, list[Candidate]] = {}
    for record in snapshot.placed.values():
        quota = None if record.placed is None else record.placed.quota
        if (
            quota is None
            or not may_end(record, waits)
            or record.preempted_at(now_s) is not None
            or is_part(record)
            or is_held_for_pods(record)
            or names[record.namespace, record.name] > 1
        ):
            continue
        candidate = make_candidate(snapshot, record)
        found.setdefault(quota.cluster_queue, []).append(candidate)
    return dict(sorted(found.items()))


def is_part(record: GangRecord) -> bool:
    """True if it is pods of a gang whose others are another one's."""
    submission = record.submission
    return submission is not None and bool(submission.restores or submission.joins)


def is_held_for_pods(record: GangRecord) -> bool:
    """True if it is a Gang object that holds its devices and has no pods yet.

    There is nobody who would make it anew.
    """
    submission = record.submission
    if submission is None or record.is_open or not submission.gang.spec.hold:
        return False
    owners = submission.gang.metadata.owner_references
    return any(owner.kind == "Gang" for owner in owners)


def _list_borrowing(
    ledger: QuotaLedger, node: QuotaNode, candidates: Sequence[Candidate], asked: Asked
) -> Iterable[Candidate]:
    """Go through those that would go while their queue borrows what is asked for.

    The lowest priority first, of these the youngest. With any of them left out it
    borrows no less when the turn of the others comes.
    """
    left: Amounts = ledger.amounts_of(node)
    for each in sorted(candidates, key=lambda c: (c.priority, age_of(c))):
        if not any(
            used > node.subtree.get(quota, 0) and asked.get(quota[1], 0)
            for quota, used in left.items()
        ):
            break
        placed = each.record.placed
        if placed is not None and placed.quota is not None:
            held = placed.quota
            for resource, amount in held.amounts.items():
                left[held.flavors[resource], resource] -= amount
        yield each
