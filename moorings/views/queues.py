"""ClusterQueues as rows: what gangs hold of their quotas, who runs, and who waits.

Counted as a decision counts them. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import structs

from contracts.ids import GangKey
from contracts.kueue import ClusterQueue
from contracts.lifecycle import GangRecord
from moorings.views.times import to_text
from solver.problem.quota.queues import find_closed, name_queue
from solver.problem.quota.quotas import write_amount
from solver.problem.quota.tree import FlavorResource, QuotaLedger, QuotaNode
from solver.queueing.aging import AGING
from solver.snapshot.maps import FrozenMap
from solver.snapshot.queues import FIELDS, with_held
from solver.snapshot.snapshot import Snapshot
from solver.timeline.patience import PATIENCE
from solver.timeline.queue_annotations import find_unread

QUEUE_KINDS = ("Namespace", *FIELDS, "Configuration")
"""Objects by which queues are known."""
DEFAULT_STRATEGY = "BestEffortFIFO"
Row = dict[str, Any]


def with_gangs(snapshot: Snapshot, records: Iterable[GangRecord]) -> Snapshot:
    """Return a Snapshot of queues with gangs, and what these hold of quotas."""
    gangs: FrozenMap[GangKey, GangRecord] = FrozenMap()
    known, held = {record.key: record for record in records}, snapshot.held
    placed = {key: each for key, each in known.items() if each.placed is not None}
    for record in placed.values():
        quota = None if record.placed is None else record.placed.quota
        held = with_held(held, quota, 1)
    return structs.replace(
        snapshot,
        gangs=gangs.with_items(known),
        waiting=gangs.with_items({k: r for k, r in known.items() if r.wants_decision}),
        placed=gangs.with_items(placed),
        held=held,
    )


def view_queues(snapshot: Snapshot) -> list[Row]:
    """Return a row for each ClusterQueue, by name."""
    ledger = QuotaLedger(snapshot)
    running = Counter(
        _queue_of(snapshot, record) for record in snapshot.placed.values()
    )
    waiting: dict[str, list[GangRecord]] = {}
    for record in snapshot.waiting.values():
        waiting.setdefault(_queue_of(snapshot, record), []).append(record)
    queues = snapshot.queues.cluster_queues
    return [
        _view_queue(name, queue, snapshot, ledger)
        | {
            "running": running[name],
            "waiting": len(waiting.get(name, ())),
            "oldestSince": _find_oldest(waiting.get(name, ())),
        }
        for name, queue in sorted(queues.items())
    ]


def _queue_of(snapshot: Snapshot, record: GangRecord) -> str:
    """Name the queue whose quota a gang holds or asks for; empty: none."""
    if record.placed is not None and record.placed.quota is not None:
        return record.placed.quota.cluster_queue
    if record.submission is None:
        return ""
    return name_queue(snapshot.queues, record.submission.gang)


def _find_oldest(records: Iterable[GangRecord]) -> str:
    """Return since when the gang waits that waits for longest; empty: none does."""
    since_s = min((each.waits_since_s for each in records), default=0.0)
    return to_text(since_s) if since_s else ""


def _view_queue(
    name: str, queue: ClusterQueue, snapshot: Snapshot, ledger: QuotaLedger
) -> Row:
    node, spec = ledger.tree.queues.get(name), queue.spec
    return {
        "name": name,
        "cohort": spec.cohort_name,
        "strategy": spec.queueing_strategy or DEFAULT_STRATEGY,
        "stopPolicy": spec.stop_policy,
        "closed": find_closed(snapshot.queues, name),
        "aging": queue.metadata.annotations.get(AGING, ""),
        "patience": queue.metadata.annotations.get(PATIENCE, ""),
        "unread": [*find_unread(queue.metadata.annotations)],
        "quotas": [] if node is None else _view_quotas(node, ledger),
    }


def _view_quotas(node: QuotaNode, ledger: QuotaLedger) -> list[Row]:
    """Return its quotas, with amounts as Kubernetes writes them; empty: no limit."""
    return [
        {
            "flavor": flavor,
            "resource": resource,
            **{
                what: "" if amount is None else write_amount(resource, amount)
                for what, amount in _count(node, (flavor, resource), ledger).items()
            },
        }
        for flavor, resource in node.subtree
    ]


def _count(
    node: QuotaNode, quota: FlavorResource, ledger: QuotaLedger
) -> dict[str, int | None]:
    """Count a quota; None: there is no such limit."""
    nominal, used = node.subtree[quota], ledger.used(node, quota)
    return {
        "used": used,
        "nominal": nominal,
        "borrowed": max(used - nominal, 0),
        "left": max(ledger.available(node, quota), 0),
        "borrowingLimit": node.borrowing.get(quota),
        "lendingLimit": node.lending.get(quota),
    }
