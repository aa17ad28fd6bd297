"""From a Decision to the messages that carry it: attempts, epochs, and what is new.

Pure. A gang that still waits for the same reasons is not repeated on the bus.
"""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from contracts import topics
from contracts.allocation import Reason, Rule
from contracts.gang import count_growing
from contracts.ids import ClusterName, GangKey, GangUID, Namespace, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import (
    BatchSolved,
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    QuotaHeld,
    ReleaseOutcome,
)
from runtime.wire import Outgoing
from solver.decision import GangDecision
from solver.problem.quota.asked import add_held

MAX_DECISION_BYTES = 7 << 20
"""Of one gang; a little less than `max_payload` of the servers that we set up."""


def make_decision(
    answer: GangDecision,
    record: GangRecord,
    *,
    cluster: ClusterName,
    solve: SolveID,
    epoch: int,
    quota: QuotaHeld | None = None,
) -> DecisionMessage | None:
    """Make the message of what was decided for a gang; None: nothing is new.

    `quota` is what its pods of this answer hold of its queue's.
    """
    if record.wants_growth:
        grown = _make_growth(answer, record, solve=solve, epoch=epoch)
        return grown and structs.replace(grown, quota=add_held(grown.quota, quota))
    if answer.members:
        return GangAllocated(
            cluster=cluster,
            namespace=record.namespace,
            name=answer.name,
            uid=record.uid,
            solve=solve,
            attempt=record.attempt + 1,
            epoch=epoch,
            members=answer.members,
            growing=_count_growing(answer, record),
            quota=quota,
        )
    if answer.rejected:
        return make_rejection(
            record.namespace,
            record.uid,
            answer.name,
            answer.reasons,
            (cluster, epoch),
        )
    waiting = isinstance(record.decision, GangPending)
    if waiting and record.reasons == answer.reasons:
        return None
    return GangPending(
        cluster=cluster,
        namespace=record.namespace,
        name=answer.name,
        uid=record.uid,
        solve=solve,
        attempt=record.attempt,
        epoch=epoch,
        reasons=answer.reasons,
        expected=record.expected,
        lacks=record.lacks,
    )


def _make_growth(
    answer: GangDecision, record: GangRecord, *, solve: SolveID, epoch: int
) -> GangAllocated | None:
    """Make the message that a gang has more pods than before; None: it has not."""
    before = record.allocated
    if before is None or record.submission is None or not answer.members:
        return None
    more = Counter(pod.member for pod in answer.members)
    order = [member.name for member in record.submission.gang.spec.members]
    members = sorted(
        (*before.members, *answer.members),
        key=lambda pod: (order.index(pod.member), pod.index),
    )
    return structs.replace(
        before,
        solve=solve,
        attempt=record.attempt + 1,
        epoch=epoch,
        members=tuple(members),
        growing=dict(Counter(before.growing) - more),
        kept=dict(Counter(pod.member for pod in before.members)),
    )


def _count_growing(answer: GangDecision, record: GangRecord) -> dict[str, int]:
    if record.submission is None:
        return {}
    placed = (pod.member for pod in answer.members)
    return count_growing(record.submission.gang.spec, placed)


def address_decision(message: DecisionMessage) -> tuple[DecisionMessage, Outgoing]:
    """Address a decision for the bus; one that is too large becomes a wait.

    The configuration of classes and claims is copied into every allocation (KEP-4381),
    so a small submission can make a large decision.
    """
    outgoing = Outgoing.of(topics.DECISIONS, message)
    size = len(outgoing.data)
    if size <= MAX_DECISION_BYTES or not isinstance(message, GangAllocated):
        return message, outgoing
    text = (
        f"its decision takes {size} bytes and the bus allows "
        f"{MAX_DECISION_BYTES}; use fewer pods or less device configuration"
    )
    waiting = GangPending(
        cluster=message.cluster,
        namespace=message.namespace,
        name=message.name,
        uid=message.uid,
        solve=message.solve,
        attempt=message.attempt - 1,
        epoch=message.epoch,
        reasons=(Reason(rule=Rule.NOT_MODELLED, message=text),),
    )
    return waiting, Outgoing.of(topics.DECISIONS, waiting)


def make_rejection(
    namespace: Namespace,
    uid: GangUID,
    name: str,
    reasons: tuple[Reason, ...],
    leader: tuple[ClusterName, int],
) -> GangRejected:
    """Make the message that a gang can never be allocated as written."""
    cluster, epoch = leader
    return GangRejected(
        cluster=cluster,
        namespace=namespace,
        name=name,
        uid=uid,
        epoch=epoch,
        reasons=reasons,
    )


def make_release(
    record: GangRecord,
    outcome: ReleaseOutcome,
    *,
    cluster: ClusterName,
    epoch: int,
) -> GangReleased:
    """Make the message that a gang holds no devices any more."""
    return GangReleased(
        cluster=cluster,
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
        epoch=epoch,
        outcome=outcome,
        command=record.command,
    )


def make_batch_end(
    cluster: ClusterName, solve: SolveID, epoch: int, gangs: tuple[GangKey, ...]
) -> Outgoing:
    """Make the message that ends a batch of decisions."""
    message = BatchSolved(cluster=cluster, solve=solve, epoch=epoch, gangs=gangs)
    return Outgoing.of(topics.SOLVED, message)
