"""Which gangs to move so that whole nodes are free, or another gang fits. Pure."""

from __future__ import annotations

from msgspec import Struct

from contracts.lifecycle import GangRecord
from contracts.messages import SubmitGang
from moorings.deciding import Judged
from moorings.errors import UnknownNameError
from moorings.what_if.answer import name_devices
from moorings.what_if.changes import find_gang
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.problem import Parameters
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import Asker, answer_all
from solver.timeline.defragment import (
    Move,
    as_waiting,
    find_moves,
    list_movable,
)
from solver.timeline.futures import Members

LAST = 1 << 62
"""Comes after whatever was submitted."""
WAITS = "gang that waits"


class Aim(Struct, frozen=True, kw_only=True):
    """What moves are for: nodes, or a gang."""

    free_nodes: int = 0
    """So many are to be free."""
    waits: str = ""
    """Or a gang that waits is to fit, by its name."""
    added: SubmitGang | None = None
    """Or one that nobody has submitted."""


class MovedPod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where a pod goes."""

    pod: str
    """Its member and index."""
    node: str
    devices: tuple[str, ...] = ()
    """Names of the devices that it gets, `driver/pool/device`, sorted."""
    leaves: str = ""
    """The node on which it is; empty: none."""


class GangMove(Struct, frozen=True, kw_only=True, rename="camel"):
    """One step: a gang ends, and begins elsewhere."""

    gang: str
    """Its `namespace/name`."""
    pods: tuple[MovedPod, ...]


class MovesPlan(Struct, frozen=True, kw_only=True, rename="camel"):
    """The fewest gangs to move, in an order in which each of them can be moved."""

    is_found: bool
    """False: no moves are enough, or none are known."""
    steps: tuple[GangMove, ...]
    nodes: tuple[str, ...]
    """Free afterwards; of moves for a gang, none."""
    places: tuple[MovedPod, ...]
    """Where the gang goes then for which they are made."""
    at_least: int
    """No fewer moves are enough."""
    proven: bool
    """True if no fewer are enough; where none are found, that nothing is."""


def plan_moves(
    snapshot: Snapshot,
    parameters: Parameters,
    judged: Judged,
    aim: Aim,
) -> MovesPlan:
    """Plan moves.

    Raises:
        UnknownNameError: no gang of that name waits.
    """
    wants: GangRecord | None = None
    if aim.added is not None:
        snapshot = apply(snapshot, aim.added, sequence=LAST)
        wants = snapshot.waiting.get(aim.added.key)
    elif aim.waits:
        wants = find_gang(snapshot.waiting.values(), aim.waits, WAITS)
    if wants is None and aim.added is not None:
        raise UnknownNameError(WAITS, aim.added.gang.metadata.name, [])
    asking = [as_waiting(record) for record in list_movable(snapshot)]
    asking += [] if wants is None else [wants]
    judged.learn(snapshot, resolve_gangs(snapshot, asking, parameters.features))
    asker = Asker(table=judged.table, parameters=parameters)
    search = find_moves(snapshot, asker, free_nodes=aim.free_nodes, wants=wants)
    found = answer_all(search, allocate)
    return MovesPlan(
        is_found=found.is_found,
        steps=tuple(map(_make_step, found.steps)),
        nodes=found.nodes,
        places=tuple(_list_places(found.members, ())),
        at_least=found.least,
        proven=found.proven,
    )


def _make_step(move: Move) -> GangMove:
    record = move.record
    before = () if record.placed is None else record.placed.members
    return GangMove(
        gang=f"{record.namespace}/{record.name}",
        pods=tuple(_list_places(move.members, before)),
    )


def _list_places(members: Members, before: Members) -> list[MovedPod]:
    nodes = {(pod.member, pod.index): pod.node for pod in before}
    return [
        MovedPod(
            pod=f"{pod.member}-{pod.index}",
            node=pod.node,
            devices=name_devices((pod,)),
            leaves=nodes.get((pod.member, pod.index), ""),
        )
        for pod in members
    ]
