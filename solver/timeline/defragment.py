"""Which gangs to move so that whole nodes are free, or another gang fits: the fewest.

Who moves is chosen by counting (`fewest.py`); the engines then place all of them at
once beside whoever stays, and one after the other: each step goes to places that are
free by then, its own old ones among them. A set that the engines refuse is a cut. Each
gang moves once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from contracts.device import DeviceTaint
from contracts.ids import DeviceID, GangKey, NodeName
from contracts.lifecycle import GangRecord
from contracts.names import OURS
from solver.decision import Status
from solver.problem.assemble import assemble, resolve_gangs
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart, PoolPart, UsePart
from solver.snapshot.snapshot import Snapshot
from solver.tiers import Tier
from solver.timeline.altered import with_taint, without_nodes
from solver.timeline.asking import Asker, Asking, read_fit
from solver.timeline.candidates import count_devices
from solver.timeline.cheapest import SolveLimits
from solver.timeline.counting import count_joint_room
from solver.timeline.fewest import FewestMoves, MovesModel
from solver.timeline.futures import (
    Members,
    list_results,
    with_gang,
    without_gangs,
)
from solver.timeline.holdings import Holding, read_holding
from solver.timeline.victims import is_local, keep_nodes

MOST_SETS = 16
"""Sets that the engines are asked about before more moves are allowed than needed."""
MOST_LARGER = 8
"""Sets with more moves that they are asked about then."""
MOST_WORK = 16.0
"""CP-SAT's deterministic time for choosing."""
TAINT = DeviceTaint(key=f"{OURS}defragment", effect="NoSchedule")
"""On devices that are not planned for a step."""
KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})


class Move(Struct, frozen=True, kw_only=True):
    """A gang that goes elsewhere, and where."""

    record: GangRecord
    """With the place that it has."""
    members: Members
    """With the place that it gets."""


class FoundMoves(Struct, frozen=True, kw_only=True):
    """Moves in the order in which each of them can be made."""

    is_found: bool
    """True if they are enough; else there are none."""
    steps: tuple[Move, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    """Free afterwards, sorted."""
    members: Members = ()
    """Where the gang goes then for which they are made."""
    least: int = 0
    """No fewer moves are enough."""
    proven: bool = False
    """True if no fewer are enough; of none, that nothing is."""


def list_movable(snapshot: Snapshot) -> list[GangRecord]:
    """List the gangs that may be moved, by their names.

    Those that end, may grow, or are tied to others' pods or to claims that they name
    stay where they are.
    """
    movable = [
        record for record in snapshot.placed.values() if _may_move(snapshot, record)
    ]
    return sorted(movable, key=lambda each: (each.namespace, each.name, each.uid))


def _may_move(snapshot: Snapshot, record: GangRecord) -> bool:
    said, submission = record.in_force, record.submission
    if said is None or said.preempted is not None or submission is None:
        return False
    if submission.joins is not None or submission.restores:
        return False
    is_elastic = any(m.min_count is not None for m in submission.gang.spec.members)
    has_growth = is_elastic or record.key in snapshot.growing
    return not has_growth and not submission.gang.named_claims


def as_waiting(record: GangRecord) -> GangRecord:
    """Return a gang as if it had no place yet."""
    if record.submission is None:
        return record
    sequence = record.submission_sequence
    return GangRecord.of(record.submission).apply(record.submission, sequence)


def find_freeable(
    snapshot: Snapshot, movable: Iterable[GangRecord]
) -> dict[NodeName, frozenset[GangKey]]:
    """Find the nodes that are free of gangs and claims once some gangs have left.

    With those that must leave each. Nodes that nothing may be placed on, that have no
    devices, or of which a device is tainted, are left out.
    """
    users: dict[NodeName, set[GangKey]] = {}
    movable = list(movable)
    for record in movable:
        for pod in () if record.placed is None else record.placed.members:
            users.setdefault(pod.node, set()).add(record.key)
    bare = without_gangs(snapshot, movable)
    usable, offering, held = set[NodeName](), set[NodeName](), set[NodeName]()
    for record in bare.placed.values():
        for pod in () if record.placed is None else record.placed.members:
            held.add(pod.node)
    for value in bare.inventory.pages.values():
        if isinstance(value, NodePart):
            if not (value.unavailable or value.unschedulable):
                usable.add(value.name)
        elif isinstance(value, PoolPart):
            if value.devices:
                offering.add(value.node)
        elif isinstance(value, UsePart) and _is_used(value):
            held.add(value.node)
    names = sorted((usable & offering) - held)
    return {name: frozenset(users.get(name, ())) for name in names}


def _is_used(value: UsePart) -> bool:
    """True if somebody has a device of a pool, or one is tainted."""
    tainted = any(taint.effect in KEEPS_AWAY for _, taint in value.taints)
    return tainted or bool(value.taken or value.shared or value.unpublished)


def find_moves(
    snapshot: Snapshot,
    asker: Asker,
    *,
    free_nodes: int = 0,
    wants: GangRecord | None = None,
) -> Asking[FoundMoves]:
    """Find the fewest gangs to move so that so many nodes are free, or a gang fits.

    Among those, the ones with the fewest devices by counting.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    return (yield from _MovesSearch(snapshot, asker, free_nodes, wants).run())


class _MovesSearch:
    def __init__(
        self,
        snapshot: Snapshot,
        asker: Asker,
        free_nodes: int,
        wants: GangRecord | None,
    ) -> None:
        self._snapshot, self._asker, self._wants = snapshot, asker, wants
        features = asker.parameters.features
        movable = list_movable(snapshot)
        parts = resolve_gangs(snapshot, map(as_waiting, movable), features)
        pairs = zip(movable, parts, strict=True)
        found = [(record, part) for record, part in pairs if not part.refused]
        self._movable = [record for record, _ in found]
        numbers = {record.key: n for n, record in enumerate(self._movable)}
        freeable = find_freeable(snapshot, self._movable) if free_nodes else {}
        users = {
            node: frozenset(numbers[key] for key in keys)
            for node, keys in freeable.items()
        }
        gangs = [part for _, part in found]
        if wants is not None:
            gangs += resolve_gangs(snapshot, [wants], features)
        self._is_refused = any(gang.refused for gang in gangs)
        self._can = free_nodes <= len(users) and not self._is_refused
        if not self._can:
            return
        problem = assemble(snapshot, tuple(gangs), asker.table, asker.parameters)
        holdings = [read_holding(snapshot, record) for record in self._movable]
        counts = count_joint_room(
            problem, gangs, [*holdings, *([Holding()] if wants is not None else [])]
        )
        devices = [count_devices(record) for record in self._movable]
        self._model = MovesModel(counts, devices, users, free_nodes)

    def run(self) -> Asking[FoundMoves]:
        """Find the moves."""
        if not self._can or (yield from self._is_in_vain()):
            return FoundMoves(is_found=False, proven=True)
        least, is_exact, work = 0, True, 0.0
        for tried in range(MOST_SETS + MOST_LARGER):
            chosen, at_least, spent = self._model.choose(self._limits(work))
            work += spent
            if at_least is None and is_exact:
                return FoundMoves(is_found=False, proven=True)
            if is_exact and at_least is not None:
                least = max(least, at_least)
            if chosen is None:
                break
            found, is_known = yield from self._try(chosen)
            if found is not None:
                return self._answer(chosen, found, least)
            is_exact = is_exact and is_known
            self._model.forbid(chosen)
            if tried >= MOST_SETS - 1:
                is_exact = False
                self._model.require(len(chosen.moved) + 1)
        return FoundMoves(is_found=False, least=least)

    def _is_in_vain(self) -> Asking[bool]:
        """True if the gang does not fit even without all that may move."""
        if self._wants is None:
            return False
        bare = without_gangs(self._snapshot, self._movable)
        problem = self._asker.question(bare, self._wants, Tier.GANGS)
        if not is_local(problem):
            return False
        fit = read_fit((yield problem), self._wants.key)
        return not fit and fit.proven

    def _limits(self, work: float) -> SolveLimits:
        parameters = self._asker.parameters
        limit = min(parameters.work_limit, max(MOST_WORK - work, 0.1))
        return SolveLimits(limit, parameters.seed)

    def _answer(
        self, chosen: FewestMoves, found: tuple[list[Move], Members], least: int
    ) -> FoundMoves:
        steps, members = found
        return FoundMoves(
            is_found=True,
            steps=tuple(steps),
            nodes=tuple(sorted(chosen.nodes)),
            members=members,
            least=least,
            proven=least == len(steps),
        )

    def _try(
        self, chosen: FewestMoves
    ) -> Asking[tuple[tuple[list[Move], Members] | None, bool]]:
        """Ask whether those that move have places together, then in which order.

        With it: True if a no is proven.
        """
        moved = [self._movable[number] for number in sorted(chosen.moved)]
        asking = [as_waiting(record) for record in moved]
        asking += [] if self._wants is None else [self._wants]
        if not asking:
            return ([], ()), True
        later = without_gangs(self._snapshot, moved)
        problem = self._asker.question_together(later, asking, Tier.GANGS)
        decision = yield without_nodes(problem, chosen.nodes)
        if not all(gang.members for gang in decision.gangs):
            return None, decision.status is Status.OPTIMAL
        planned = {gang.key: gang.members for gang in decision.gangs}
        return (yield from self._order(moved, planned, chosen.nodes)), False

    def _order(
        self,
        moved: list[GangRecord],
        planned: Mapping[GangKey, Members],
        freed: Collection[NodeName],
    ) -> Asking[tuple[list[Move], Members] | None]:
        """Move one gang after the other: as planned, or else anywhere."""
        state, left, steps = self._snapshot, [*moved], list[Move]()
        while left:
            step = yield from self._find_step(state, left, planned, freed)
            if step is None:
                return None
            left.remove(step.record)
            steps.append(step)
            state = move(state, step)
        if self._wants is None:
            return steps, ()
        members = yield from self._place(state, self._wants, freed)
        return (steps, members) if members else None

    def _find_step(
        self,
        state: Snapshot,
        left: Iterable[GangRecord],
        planned: Mapping[GangKey, Members],
        freed: Collection[NodeName],
    ) -> Asking[Move | None]:
        """Find a gang that can move now."""
        for is_planned in (True, False):
            for record in left:
                bare = without_gangs(state, [record])
                within = planned[record.key] if is_planned else ()
                asked = as_waiting(record)
                members = yield from self._place(bare, asked, freed, within)
                if members:
                    return Move(record=record, members=members)
        return None

    def _place(
        self,
        state: Snapshot,
        record: GangRecord,
        freed: Collection[NodeName],
        within: Members = (),
    ) -> Asking[Members]:
        """Ask where a gang may go; `within`: only to these devices."""
        problem = self._asker.question(state, record, Tier.GANGS)
        if within and is_local(problem):
            problem = keep_nodes(problem, {pod.node for pod in within})
        problem = without_nodes(problem, freed)
        if within:
            problem = _keep_devices(problem, within)
        return read_fit((yield problem), record.key).members


def _keep_devices(problem: Problem, members: Members) -> Problem:
    """Let only these pods' devices be had."""
    kept = {result.device_id for result in list_results(members)}
    pools = (
        part.value
        for page in problem.pages
        for part in page.parts()
        if isinstance(part.value, PoolPart)
    )
    others = (
        DeviceID(pool.driver, pool.pool, device.name)
        for pool in pools
        for device in pool.devices
    )
    return with_taint(problem, set(others) - kept, TAINT)


def move(snapshot: Snapshot, step: Move) -> Snapshot:
    """Return the cluster once a gang has moved."""
    record = step.record
    quota = None if record.placed is None else record.placed.quota
    bare = without_gangs(snapshot, [record])
    return with_gang(bare, record, step.members, quota=quota)
