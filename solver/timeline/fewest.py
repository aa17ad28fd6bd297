"""The fewest gangs to move so that nodes are free, by counting and cuts.

A relaxation: whoever moves is counted where devices, CPUs and memory leave room once
all that move have left, node by node. Rules between pods, constraints and topology are
left out; the engines are asked about those. Limited in work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from contracts.ids import NodeName
from solver.engines.cp_model import CpModel, IntVar
from solver.engines.cpsat import Infeasible, Solved, Term, total
from solver.timeline.cheapest import SolveLimits
from solver.timeline.counting import JointCounts, Limit, NodeRoom


class FewestMoves(Struct, frozen=True):
    """Who moves, and which nodes are free then."""

    moved: frozenset[int]
    nodes: frozenset[NodeName]


class MovesModel:
    """Which gangs move, which nodes are freed, and how many pods go where."""

    def __init__(
        self,
        counts: JointCounts,
        devices: Sequence[int],
        users: Mapping[NodeName, frozenset[int]],
        wanted: int,
    ) -> None:
        """Let some nodes be freed, and place whoever moves on others.

        `counts`: of the gangs that may move, by number, then of those that must have a
        place; `devices`: of those that may move; `users`: who must leave a node that is
        freed; `wanted`: nodes to free.
        """
        self._model = CpModel()
        self._gangs = [self._model.new_bool_var("") for _ in devices]
        self._nodes = {name: self._model.new_bool_var("") for name in sorted(users)}
        self._weight = sum(devices) + 1
        self._model.add(total([(v, 1) for v in self._nodes.values()]) == wanted)
        for name, gangs in users.items():
            for gang in sorted(gangs):
                self._model.add(self._nodes[name] <= self._gangs[gang])
        self._add_pods(counts)
        self._model.minimize(
            total(
                [
                    (variable, self._weight + each)
                    for variable, each in zip(self._gangs, devices, strict=True)
                ]
            )
        )

    def _add_pods(self, counts: JointCounts) -> None:
        """Place all pods of whoever moves on nodes that are not freed."""
        placed: list[list[Term]] = [[] for _ in range(counts.kinds)]
        for node in counts.nodes:
            for kind, variable in self._add_node(node).items():
                placed[kind].append((variable, 1))
        must = [0] * counts.kinds
        for gang, pods in enumerate(counts.pods):
            for kind, count in pods:
                if gang < len(self._gangs):
                    placed[kind].append((self._gangs[gang], -count))
                else:
                    must[kind] += count
        for terms, count in zip(placed, must, strict=True):
            self._model.add(total(terms) == count)

    def _add_node(self, node: NodeRoom) -> dict[int, IntVar]:
        pods = {k: self._model.new_int_var(0, most, "") for k, most in node.most}
        freed = self._nodes.get(node.name)
        if freed is not None:
            for kind, most in node.most:
                self._model.add(total([(pods[kind], 1), (freed, most)]) <= most)
        for limit in node.limits:
            needs = [(pods[kind], need) for kind, need in limit.needs]
            given = [(self._gangs[g], -amount) for g, amount in limit.given]
            # More may be in use than there is: then nobody new goes there.
            left = max(limit.left, 0)
            self._model.add(total([*needs, *given]) <= left)
            self._tighten(limit, dict(node.most), pods)
        for kind, gang in node.blocked:
            most = dict(node.most)[kind]
            self._model.add(total([(pods[kind], 1), (self._gangs[gang], -most)]) <= 0)
        return pods

    def _tighten(
        self, limit: Limit, most: Mapping[int, int], pods: Mapping[int, IntVar]
    ) -> None:
        """Say of each kind what follows from a limit for whole pods."""
        left = max(limit.left, 0)
        all_given = sum(amount for _, amount in limit.given)
        for kind, need in limit.needs:
            if left // need >= most[kind]:
                continue
            given = [(self._gangs[g], -_ceil(a, need)) for g, a in limit.given]
            self._model.add(total([(pods[kind], 1), *given]) <= left // need)
            for gang, amount in limit.given:
                without = (left + all_given - amount) // need
                if without < most[kind]:
                    more = [(pods[kind], 1), (self._gangs[gang], without - most[kind])]
                    self._model.add(total(more) <= without)

    def forbid(self, moves: FewestMoves) -> None:
        """Leave out that just these move and just these nodes are freed."""
        same = [(v, 1 if g in moves.moved else -1) for g, v in enumerate(self._gangs)]
        same += [(self._nodes[name], 1) for name in sorted(moves.nodes)]
        self._model.add(total(same) <= len(moves.moved) + len(moves.nodes) - 1)

    def require(self, moves: int) -> None:
        """Let at least so many move."""
        self._model.add(total([(variable, 1) for variable in self._gangs]) >= moves)

    def choose(
        self, limits: SolveLimits
    ) -> tuple[FewestMoves | None, int | None, float]:
        """Choose the fewest moves, of the fewest devices.

        None: none was found. With it: how many move at least, or None if no moves can
        be enough, and the work.
        """
        outcome = limits.solve(self._model)
        if isinstance(outcome, Infeasible):
            return None, None, outcome.work
        if not isinstance(outcome, Solved):
            return None, 0, outcome.work
        chosen = FewestMoves(
            frozenset(g for g, v in enumerate(self._gangs) if outcome.value(v)),
            frozenset(name for name, v in self._nodes.items() if outcome.value(v)),
        )
        least = len(chosen.moved)
        if not outcome.optimal:
            least = max(int(outcome.bound + 1e-6) // self._weight, 0)
        return chosen, least, outcome.work


def _ceil(amount: int, need: int) -> int:
    return -(-amount // need)
