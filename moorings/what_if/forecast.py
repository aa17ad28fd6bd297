"""What will be decided of a cluster next, if nothing else changes. Pure.

The decisions are those that a solver makes which takes over now; so what is forecast of
changed things is, byte by byte, what is decided once they have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangKey, NodeName
from contracts.lifecycle import GangRecord
from contracts.messages import SubmitGang
from contracts.times import write_time
from moorings.deciding import Deciding, Judged
from moorings.what_if.answer import (
    ALLOCATED,
    ENDED,
    REJECTED,
    RUNS,
    WAITS,
    Forecasts,
    GangFate,
    WhatIfAnswer,
    compare_fates,
    count_pods,
    name_devices,
)
from moorings.what_if.changes import Changes, change_cluster, end_gangs
from solver.decision import DECISION, Decision
from solver.problem.problem import Parameters
from solver.queueing.aging import list_aged
from solver.record import sha_of
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.reserve import Reservation

UNKNOWN = "unknown"
"""Stands for a start of which nobody knows when."""


class Settings(Struct, frozen=True, kw_only=True):
    """What decides, besides the cluster."""

    cluster: ClusterName
    parameters: Parameters
    judged: Judged
    patience_s: int
    """How long a gang waits before devices are kept for it."""
    now_s: int


class Forecast(Deciding):
    """Decides whatever waits now, and keeps what was decided."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        for aged in list_aged(snapshot, settings.now_s):
            snapshot = apply(snapshot, aged)
        super().__init__(
            snapshot,
            settings.parameters,
            settings.judged,
            cluster=settings.cluster,
            patience_s=settings.patience_s,
            now_s=settings.now_s,
        )
        self.decisions: list[Decision] = []

    def _note_decision(self, decision: Decision) -> None:
        self.decisions.append(decision)

    @property
    def kept(self) -> Mapping[GangKey, Reservation]:
        """What is kept for whom."""
        return {each.key: each for each in self._reservations.book.kept}

    def list_hashes(self) -> tuple[str, ...]:
        """Hash what was decided, in its order."""
        return tuple(sha_of(DECISION.encode(each)) for each in self.decisions)


def answer_what_if(
    snapshot: Snapshot, changes: Changes, added: Iterable[SubmitGang], how: Settings
) -> WhatIfAnswer:
    """Forecast a cluster as it is, and as it would be.

    Raises:
        UnknownNameError: something that changes is not there.
    """
    changed = end_gangs(snapshot, changes.free)
    changed = change_cluster(changed, changes, how.cluster)
    before, after = Forecast(snapshot, how), Forecast(changed, how)
    for message in added:
        after.believe(message)
    fates = []
    for forecast in (before, after):
        forecast.decide_all()
        fates.append(_list_fates(forecast, snapshot, frozenset(changes.without_nodes)))
    decisions = Forecasts(before=before.list_hashes(), after=after.list_hashes())
    return compare_fates(fates[0], fates[1], decisions)


def _list_fates(
    forecast: Forecast, start: Snapshot, gone: frozenset[NodeName]
) -> dict[str, GangFate]:
    """List what becomes of gangs that have a place or want one, by their names."""
    fates: dict[str, GangFate] = {}
    kept, now = forecast.kept, forecast.snapshot
    records = sorted(
        now.gangs.values(), key=lambda r: (r.namespace, r.name, r.submission_sequence)
    )
    nodes = frozenset(now.inventory.nodes)
    for record in records:
        is_new = record.key not in start.gangs
        concerns = record.key in start.placed or record.key in start.waiting
        if is_new or concerns:
            lost = gone - nodes
            fate = _make_fate(record, start, kept.get(record.key), lost)
            name = f"{record.namespace}/{record.name}"
            fates[name if name not in fates else f"{name} ({record.uid})"] = fate
    return fates


def _make_fate(
    record: GangRecord,
    start: Snapshot,
    kept: Reservation | None,
    lost: frozenset[NodeName],
) -> GangFate:
    placed = record.placed
    if placed is not None:
        was = start.placed.get(record.key)
        pods = count_pods(pod.node for pod in placed.members)
        on = sorted(lost.intersection(map(NodeName, pods)))
        return GangFate(
            verdict=RUNS if was is not None and was.placed == placed else ALLOCATED,
            pods=pods,
            devices=name_devices(placed.members),
            reasons=tuple(f"it has pods on {node}, which is gone" for node in on),
        )
    if record.is_over:
        is_rejected = record.phase is GangPhase.REJECTED
        verdict = REJECTED if is_rejected else ENDED
        reasons = record.reasons if is_rejected else ()
        return GangFate(verdict=verdict, reasons=tuple(map(str, reasons)))
    return GangFate(
        verdict=WAITS,
        reasons=tuple(map(str, record.reasons)),
        starts_by="" if kept is None else _write_start(kept),
        proven=kept is not None and kept.proven,
    )


def _write_start(kept: Reservation) -> str:
    if kept.start_s is None:
        return UNKNOWN
    return write_time(kept.start_s)
