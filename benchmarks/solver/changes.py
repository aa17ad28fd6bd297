"""The smallest changes that would let a gang in, on a full fleet of 500 nodes.

    python -m benchmarks.solver.changes [--size full] [--seed N] [--json FILE]

Gangs of 16 to 256 pods with 1 to 4 GPUs wait, half of them for one rack; every kind of
change is looked for. `minimal`: each change that is offered was solved again with one
node, pod or gang less, and the gang had no place. The first question about a fleet is
cold, and counts; that check does not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from msgspec import Struct, structs

from benchmarks.report import Row, arguments, percentile, report
from benchmarks.solver.victims import PARAMETERS, Finder
from benchmarks.worlds.full_fleet import NOW_S, draw_ages, fill, submit
from contracts.ids import GangKey
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.problem.problem import Problem
from solver.service.garbage import after_batch
from solver.snapshot.node_state import add_amounts
from solver.timeline.altered import with_ended, with_gang, with_nodes, with_pods
from solver.timeline.asking import Asker, answer_all
from solver.timeline.candidates import may_end
from solver.timeline.changes import ChangeSearch, SmallestChange
from solver.timeline.holdings import Holding, read_holding
from solver.timeline.terms import without_term

SIZES = {"small": (500, 1, 10), "full": (500, 10, 20)}
"""Nodes, fleets, gangs that wait for each."""
PODS = (16, 33, 64, 100, 256)


class Offered(Struct, frozen=True):
    """What was found for one gang that waits."""

    changes: tuple[SmallestChange, ...]
    seconds: float
    cpu_s: float
    questions: int
    minimal: bool


def is_minimal(
    problem: Problem, held: dict[GangKey, Holding], change: SmallestChange
) -> bool:
    """True if the change lets the gang in, and nothing less of it does."""
    return _is_in(problem, held, change) and not any(
        _is_in(problem, held, less) for less in _list_less(problem, change)
    )


def _is_in(
    problem: Problem, held: dict[GangKey, Holding], change: SmallestChange
) -> bool:
    (gang,), used = problem.gangs, dict[str, int]()
    for holding in held.values():
        add_amounts(used, holding.amounts.get(change.like, {}))
    changed = with_ended(problem, [held[key] for key in change.end])
    changed = with_nodes(changed, change.like, change.nodes, used)
    if change.without:
        gang = without_term(gang, change.without) or gang
    changed = with_gang(changed, with_pods(gang, change.pods))
    return not allocate(changed).gangs[0].reasons


def _list_less(problem: Problem, change: SmallestChange) -> Iterator[SmallestChange]:
    (gang,) = problem.gangs
    for left in change.end:
        ended = tuple(key for key in change.end if key != left)
        yield structs.replace(change, end=ended)
    if change.nodes:
        yield structs.replace(change, nodes=change.nodes - 1)
    asked = {member.name: member.count for member in gang.members}
    for name, count in change.pods.items():
        if count + 1 < asked[name]:
            yield structs.replace(change, pods={name: count + 1})


def draw_offers(finder: Finder, nodes: int, gangs: int, seed: int) -> list[Offered]:
    """Look for changes for gangs on one fleet."""
    draw, fleet, offers = random.Random(-seed), fill(nodes, seed), list[Offered]()
    for number in range(gangs):
        in_rack = number % 2 == 0
        snapshot, message = submit(
            fleet,
            10**6 + number,
            draw.choice(PODS[:3] if in_rack else PODS),
            draw.choice((1, 2, 3, 4)),
            draw.choice((0, 50, 150, 250)),
            in_rack=in_rack,
        )
        waits = snapshot.gangs.get(message.key)
        assert waits is not None
        candidates = draw_ages(fleet.records, seed * 1_000 + number)
        asker = Asker(table=finder.evaluate(snapshot, waits), parameters=PARAMETERS)
        problem = asker.question(snapshot, waits)
        asked = 0

        def decide(question: Problem) -> Decision:
            nonlocal asked
            asked += 1
            return allocate(question)

        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        held = {c.record.key: read_holding(snapshot, c.record) for c in candidates}
        legal = [c for c in candidates if may_end(c.record, waits)]
        search = ChangeSearch(problem, waits.key, legal, held, NOW_S)
        found = [
            change
            for asking in search.searches()
            for change in answer_all(asking, decide)
        ]
        spent_s = time.perf_counter() - began_s
        cpu_s = time.process_time() - began_cpu_s
        helping = tuple(change for change in found if change.helps)
        minimal = all(is_minimal(problem, held, change) for change in helping)
        offers.append(Offered(helping, spent_s, cpu_s, asked, minimal))
        after_batch()
    return offers


def main() -> None:
    """Print one row."""
    options = arguments(__doc__ or "")
    nodes, fleets, gangs = SIZES[options.size]
    with SelectorEvaluator() as evaluator:
        finder = Finder(evaluator)
        offers = [
            offer
            for number in range(fleets)
            for offer in draw_offers(
                finder, nodes, gangs, options.seed * 1_000 + number
            )
        ]
    report("changes", options, [row_of(nodes, offers)])


def row_of(nodes: int, offers: list[Offered]) -> Row:
    """Sum up what was found."""
    spent = [offer.seconds * 1e3 for offer in offers]
    worked = [offer.cpu_s * 1e3 for offer in offers]
    columns = {
        "end": "gangs to end",
        "nodes": "nodes to add",
        "fewer": "pods fewer",
        "relax": "terms less",
    }
    offered = {
        column: sum(any(c.sort == sort for c in offer.changes) for offer in offers)
        for sort, column in columns.items()
    }
    return {
        "nodes": nodes,
        "gangs": len(offers),
        "helped": sum(bool(offer.changes) for offer in offers),
        "minimal": sum(offer.minimal for offer in offers),
        **offered,
        "p50 ms": percentile(spent, 0.5),
        "max ms": max(spent),
        "CPU p50 ms": percentile(worked, 0.5),
        "CPU max ms": max(worked),
        "questions": max(offer.questions for offer in offers),
    }


if __name__ == "__main__":
    main()
