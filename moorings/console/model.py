"""The console's state, and how it differs from what was last shown. Pure.

A page is sent everything once, and from then on what changed: both in one form, parts
of it by name, where `None` says that there is no such part any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.fence import EpochClaimed, SolverSeen
from contracts.ids import ClusterName, GangUID, NodeName
from contracts.liveness import PublisherLeads
from contracts.messages import DevicesAnnounced, HealthJudged, NodeSeen
from contracts.reports import GroupReported, ReportWithdrawn
from contracts.solves import SolveDecided, SolveOpened
from contracts.topics import HEALTH, HEARTBEAT_S, INVENTORIES, REPORTS
from moorings.console.fleet import FleetPicture
from moorings.console.gangs import GangRows
from moorings.recorded import SolveEntry
from moorings.stories import GangStory, HeldObjects, collect_stories
from moorings.views.fold import DevicesFold
from moorings.views.inventory import KnownDevices, name_classes
from moorings.views.silence import describe_no_solver, describe_silence
from moorings.views.solves import view_entry
from runtime.wire import Incoming
from solver.snapshot.snapshot import InventoryExpired

MOST_SOLVES = 500
"""Recorded solves that are listed: the last ones."""
Update = dict[str, Any]


class ConsoleModel:
    """Everything read from the bus so far, and what was last shown of it."""

    def __init__(self, cluster: ClusterName) -> None:
        self.picture = FleetPicture()
        self.solves: dict[str, SolveEntry] = {}
        """By id, oldest first."""
        self._cluster = cluster
        self._fold = DevicesFold()
        self._heard_s: dict[NodeName, float] = {}
        self._reports: dict[tuple[str, ...], GroupReported] = {}
        self._leader: PublisherLeads | None = None
        self._solver: SolverSeen | None = None
        self._rows = GangRows()
        self._changed_solves: set[str] = set()
        self._about: dict[str, Any] = {}
        self._rows_of: tuple[Any, ...] = ()
        self._reports_taken = 0

    @property
    def known(self) -> KnownDevices:
        """The devices as known now."""
        return self._fold.known()

    @property
    def held(self) -> HeldObjects:
        """Which pods of gangs are there, and which claims are."""
        return _read_held(self.known)

    @property
    def stories(self) -> list[GangStory]:
        """All gangs, by namespace and name."""
        gangs = self._fold.snapshot.gangs.values()
        submitted = sorted(
            (record for record in gangs if record.submission is not None),
            key=lambda record: record.submission_sequence,
        )
        return collect_stories(submitted, self._reports.values())

    # --- messages in ------------------------------------------------------------------

    def take(self, incoming: Incoming[Any], now_s: float) -> None:
        """Take in what was read; `now_s`: of any clock that only goes on.

        Raises:
            DecodeError: an observed object is not what its kind demands.
            UnknownKindError: an observed object is of a kind that nobody follows.
        """
        message = incoming.message
        match message:
            case None:
                self._take_end(incoming)
            case NodeSeen(node=node):
                self._heard_s[node] = now_s
            case GroupReported():
                self._reports[incoming.names] = message
                self._reports_taken += 1
            case ReportWithdrawn():
                self._take_end(incoming)
            case PublisherLeads():
                self._leader = message
            case EpochClaimed():
                self._fold.limit_drivers(message.agent_drivers)
                self._solver = SolverSeen(claim=message, at_s=incoming.time_s)
            case SolveOpened(solve=solve):
                entry = self.solves.get(solve)
                decided = entry.decided if entry is not None else None
                self._keep_solve(SolveEntry(opened=message, decided=decided))
            case SolveDecided(solve=solve):
                if (entry := self.solves.get(solve)) is not None:
                    self._keep_solve(SolveEntry(opened=entry.opened, decided=message))
            case _:
                self._fold.apply(message, incoming.sequence, incoming.time_s)

    def _take_end(self, incoming: Incoming[Any]) -> None:
        """Forget the last message of a subject: it no longer counts."""
        if incoming.topic is REPORTS:
            self._reports.pop(incoming.names, None)
            self._reports_taken += 1
        elif incoming.topic in (INVENTORIES, HEALTH):
            node = NodeName(incoming.names[1])
            gone = HealthJudged(cluster=self._cluster, node=node)
            self._fold.apply(gone, 0)
            if incoming.topic is INVENTORIES:
                no_pools = DevicesAnnounced(cluster=self._cluster, node=node)
                self._fold.apply(no_pools, 0)
                self._fold.apply(InventoryExpired(node=node), 0)

    def _keep_solve(self, entry: SolveEntry) -> None:
        self.solves[entry.opened.solve] = entry
        self._changed_solves.add(entry.opened.solve)
        while len(self.solves) > MOST_SOLVES:
            oldest = next(iter(self.solves))
            del self.solves[oldest]
            self._changed_solves.add(oldest)

    # --- what is shown ----------------------------------------------------------------

    def update(
        self, now_s: float, unread: int = 0, last_unread: Sequence[dict[str, str]] = ()
    ) -> Update:
        """Show what is known now; returns what of it is new, empty if nothing is.

        `unread`: how many messages could not be read, `last_unread` some of them.
        """
        heard = {n for n, at in self._heard_s.items() if at > now_s - HEARTBEAT_S}
        self._fold.heard = heard
        known, touched = self._fold.known(), self._fold.take_touched()
        nodes = self.picture.update(known, touched)
        records = self.picture.records
        gangs = self._update_rows(known, has_touched=bool(touched))
        update: Update = {
            "nodes": {node: records.get(node) for node in sorted(nodes)},
            "gangs": gangs,
            "solves": self._view_solves(self._changed_solves),
        }
        self._changed_solves = set()
        about = self._view_about(known, unread, last_unread)
        if about != self._about:
            update["about"] = self._about = about
        return {part: value for part, value in update.items() if value}

    def whole(self) -> Update:
        """Return everything that was last shown, for a new listener."""
        return {
            "whole": True,
            "nodes": self.picture.records,
            "gangs": self._rows.rows,
            "solves": self._view_solves(self.solves),
            "about": self._about,
        }

    def _update_rows(self, known: KnownDevices, *, has_touched: bool) -> dict[str, Any]:
        """Update the rows of gangs, if any changed; returns the changes."""
        rows_of = (self._fold.snapshot.gangs, self._reports_taken)
        if rows_of == self._rows_of and not has_touched:
            return {}
        self._rows_of = rows_of
        return self._rows.update(self.stories, _read_held(known))

    def _view_solves(self, solves: Any) -> dict[str, Any]:
        return {
            solve: view_entry(self.solves[solve]) if solve in self.solves else None
            for solve in solves
        }

    def _list_silences(self, now: datetime) -> list[str]:
        """List that no solver or no publisher leads, the solver first."""
        no_solver = describe_no_solver(self._cluster, self._solver, now)
        return list(filter(None, (no_solver, describe_silence(self._leader, now))))

    def _view_about(
        self, known: KnownDevices, unread: int, last_unread: Sequence[dict[str, str]]
    ) -> dict[str, Any]:
        return {
            "cluster": self._cluster,
            "classes": name_classes(known),
            "silences": self._list_silences(datetime.now(UTC)),
            "unread": unread,
            "lastUnread": list(last_unread),
        }


def _read_held(known: KnownDevices) -> HeldObjects:
    pods = {pod: GangUID(key.uid) for pod, key in known.pod_gangs.items()}
    return HeldObjects(pods=pods, claims=frozenset(known.snapshot.claims))
