"""Which gangs to move so that whole nodes are free, or another gang fits. Pure."""

from __future__ import annotations

from msgspec import Struct

from contracts.lifecycle import GangRecord
from moorings.deciding import Judged
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.problem import Parameters
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asker, answer_all
from solver.timeline.defragment import (
    Move,
    as_waiting,
    find_moves,
    list_movable,
)
from solver.timeline.futures import Members, list_results


class PodPlace(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
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
    pods: tuple[PodPlace, ...]


class MovesPlan(Struct, frozen=True, kw_only=True, rename="camel"):
    """The fewest gangs to move, in an order in which each of them can be moved."""

    is_found: bool
    """False: no moves are enough, or none are known."""
    steps: tuple[GangMove, ...]
    nodes: tuple[str, ...]
    """Free afterwards; of moves for a gang, none."""
    places: tuple[PodPlace, ...]
    """Where the gang goes then for which they are made."""
    at_least: int
    """No fewer moves are enough."""
    proven: bool
    """True if no fewer are enough; where none are found, that nothing is."""


def plan_moves(
    snapshot: Snapshot,
    parameters: Parameters,
    judged: Judged,
    *,
    free_nodes: int = 0,
    wants: GangRecord | None = None,
) -> MovesPlan:
    """Plan moves so that so many nodes are free, or a gang that waits fits."""
    asking = [as_waiting(record) for record in list_movable(snapshot)]
    asking += [] if wants is None else [wants]
    judged.learn(snapshot, resolve_gangs(snapshot, asking, parameters.features))
    asker = Asker(table=judged.table, parameters=parameters)
    search = find_moves(snapshot, asker, free_nodes=free_nodes, wants=wants)
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


def _list_places(members: Members, before: Members) -> list[PodPlace]:
    nodes = {(pod.member, pod.index): pod.node for pod in before}
    return [
        PodPlace(
            pod=f"{pod.member}-{pod.index}",
            node=pod.node,
            devices=tuple(sorted(str(r.device_id) for r in list_results((pod,)))),
            leaves=nodes.get((pod.member, pod.index), ""),
        )
        for pod in members
    ]
