"""Victims on a full fleet: how many are proven minimal, how soon, and what is lost.

    python -m benchmarks.solver.victims [--size full] [--seed N] [--json FILE]

Gangs of 64 pods with 1 to 4 GPUs each wait for one rack of a full fleet: 1,000 nodes
in racks of 40 (full: 1,000 draws on 20 fleets, the ages of all gangs drawn anew for
each). The first question about a fleet is cold, and counts. `lost` are GPU-seconds
since the last checkpoint. The peer is the rule of KEP-5710, workload-aware preemption:
of each rack all gangs of lower priority are taken out, and those of higher priority,
then the older ones, are put back while the gang still fits; the rack is chosen as
kube-scheduler chooses a node. It is given the same gangs.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from benchmarks.report import Row, arguments, percentile, report
from benchmarks.worlds.full_fleet import IN_RACK, NOW_S, draw_ages, fill, submit
from benchmarks.worlds.topology import DEVICES
from contracts.ids import NodeName
from contracts.lifecycle import GangRecord
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.problem.assemble import find_missing_verdicts, resolve_gangs
from solver.problem.problem import Parameters, Problem
from solver.selectors.table import SelectorTable
from solver.service.garbage import after_batch, collect_between_batches
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asker, answer_all
from solver.timeline.candidates import Candidate, cost_of, may_end
from solver.timeline.victims import Victims, find_victims

PARAMETERS = Parameters(version="benchmark")
SIZES = {"small": (1_000, 2, 20), "full": (1_000, 20, 50)}
"""Nodes, fleets, gangs that wait for each."""
PODS = 64


class FoundVictims(Struct, frozen=True):
    """One gang that waits, and what was found for it."""

    found: Victims
    seconds: float
    cpu_s: float
    questions: int
    reprieved: tuple[Candidate, ...] | None


def reprieve(
    candidates: Sequence[Candidate], waits: GangRecord, gpus: int
) -> tuple[Candidate, ...] | None:
    """Choose victims as KEP-5710 does, in each rack; None: no rack would do."""
    racks: dict[int, dict[int, dict[NodeName, int]]] = defaultdict(dict)
    nodes: dict[int, dict[NodeName, int]] = defaultdict(dict)
    for number, candidate in enumerate(candidates):
        placed = candidate.record.placed
        for pod in () if placed is None else placed.members:
            rack = int(pod.node.rpartition("-")[2]) // IN_RACK
            nodes[rack].setdefault(pod.node, DEVICES)
            held = sum(len(c.allocation.devices.results) for c in pod.claims)
            if may_end(candidate.record, waits):
                of_node = racks[rack].setdefault(number, {})
                of_node[pod.node] = of_node.get(pod.node, 0) + held
            else:
                nodes[rack][pod.node] -= held
    found = list[tuple[Candidate, ...]]()
    for rack, gangs in racks.items():
        free, victims = nodes[rack], list[Candidate]()
        if sum(left // gpus for left in free.values()) < PODS:
            continue
        urgent = sorted(gangs, key=lambda n: _order_of_reprieve(candidates[n]))
        for number in urgent:
            kept = {node: free[node] - held for node, held in gangs[number].items()}
            if sum(left // gpus for left in {**free, **kept}.values()) >= PODS:
                free.update(kept)
            else:
                victims.append(candidates[number])
        found.append(tuple(victims))
    return min(found, key=_order_as_upstream, default=None)


def _order_of_reprieve(candidate: Candidate) -> tuple[float, float]:
    return -candidate.priority, candidate.started_s


def _order_as_upstream(victims: tuple[Candidate, ...]) -> tuple[float, ...]:
    """Order as `pickOneNodeForPreemption` of kube-scheduler: the first is taken."""
    highest = max((each.priority for each in victims), default=-1)
    first = [each.started_s for each in victims if each.priority == highest]
    priorities = sum(each.priority for each in victims)
    return highest, priorities, len(victims), -min(first, default=0)


class Finder:
    """Finds victims, and keeps what selectors said."""

    def __init__(self, evaluator: SelectorEvaluator) -> None:
        self._evaluator = evaluator
        self._table = SelectorTable()
        collect_between_batches()

    def evaluate(self, snapshot: Snapshot, waits: GangRecord) -> SelectorTable:
        """Evaluate the selectors of a gang, where that was not done before."""
        gangs = resolve_gangs(snapshot, [waits], PARAMETERS.features)
        while missing := find_missing_verdicts(snapshot, gangs, self._table):
            verdicts = self._evaluator.evaluate(missing)
            self._table = self._table.with_verdicts(missing, verdicts)
        return self._table

    def find(
        self, snapshot: Snapshot, waits: GangRecord, candidates: Sequence[Candidate]
    ) -> tuple[Victims, float, float, int]:
        """Find the victims for a gang: with seconds, CPU and the engines' questions."""
        began_s, cpu_s, asked = time.perf_counter(), time.process_time(), 0
        asker = Asker(table=self.evaluate(snapshot, waits), parameters=PARAMETERS)
        asking = find_victims(snapshot, waits, asker, candidates, NOW_S)

        def decide(problem: Problem) -> Decision:
            nonlocal asked
            asked += 1
            return allocate(problem)

        found = answer_all(asking, decide)
        spent_s = time.perf_counter() - began_s
        cpu_s = time.process_time() - cpu_s
        after_batch()
        return found, spent_s, cpu_s, asked


def draw_gangs(
    finder: Finder, nodes: int, gangs: int, seed: int
) -> dict[int, list[FoundVictims]]:
    """Find the victims for gangs on one fleet, by the GPUs of their pods."""
    draw, fleet = random.Random(-seed), fill(nodes, seed)
    drawn: dict[int, list[FoundVictims]] = defaultdict(list)
    for number in range(gangs):
        gpus = draw.choice((1, 2, 3, 4))
        priority = draw.choice((50, 150, 250))
        snapshot, message = submit(
            fleet, 10**6 + number, PODS, gpus, priority, in_rack=True
        )
        waits = snapshot.gangs.get(message.key)
        assert waits is not None
        candidates = draw_ages(fleet.records, seed * 1_000 + number)
        found, spent_s, cpu_s, asked = finder.find(snapshot, waits, candidates)
        peer = reprieve(candidates, waits, gpus)
        drawn[gpus].append(FoundVictims(found, spent_s, cpu_s, asked, peer))
    return drawn


def row_of(name: str, nodes: int, drawn: list[FoundVictims]) -> Row:
    """Sum up what was found."""
    spent = [each.seconds * 1e3 for each in drawn]
    worked = [each.cpu_s * 1e3 for each in drawn]
    pairs = [
        (each.found.cost.lost_s, cost_of(each.reprieved, NOW_S).lost_s)
        for each in drawn
        if each.reprieved is not None and each.found
    ]
    assert all(bool(each.found) == (each.reprieved is not None) for each in drawn)
    ours, theirs = (sum(pair[part] for pair in pairs) for part in range(2))
    return {
        "pods of": name,
        "nodes": nodes,
        "gangs": len(drawn),
        "helped": len(pairs),
        "proven %": 100 * sum(each.found.proven for each in drawn) / len(drawn),
        "p50 ms": percentile(spent, 0.5),
        "p99 ms": percentile(spent, 0.99),
        "CPU p50 ms": percentile(worked, 0.5),
        "CPU p99 ms": percentile(worked, 0.99),
        "questions": max(each.questions for each in drawn),
        "victims": max(len(each.found.victims) for each in drawn),
        "lost GPU-h": ours / 3600,
        "reprieve GPU-h": theirs / 3600,
        "of it %": 100 * ours / max(theirs, 1),
        "lost more": sum(mine > peer for mine, peer in pairs),
    }


def main() -> None:
    """Print a row for each size of pods, and one for all."""
    options = arguments(__doc__ or "")
    nodes, fleets, gangs = SIZES[options.size]
    drawn: dict[int, list[FoundVictims]] = defaultdict(list)
    with SelectorEvaluator() as evaluator:
        finder = Finder(evaluator)
        for number in range(fleets):
            seed = options.seed * 1_000 + number
            for gpus, found in draw_gangs(finder, nodes, gangs, seed).items():
                drawn[gpus] += found
    rows = [row_of(f"{gpus} GPUs", nodes, drawn[gpus]) for gpus in sorted(drawn)]
    rows.append(row_of("all", nodes, [each for of in drawn.values() for each in of]))
    report("victims", options, rows)


if __name__ == "__main__":
    main()
