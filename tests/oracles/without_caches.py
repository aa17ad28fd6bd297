"""Drawn worlds, asked several questions each, in a process that remembers nothing.

`python -m tests.oracles.without_caches SEED ...` writes one JSON object: by case the
Problem's hash and the bytes of its Decision, or the error that it ended with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.features import Features
from solver.allocate import allocate
from solver.cache import Cache
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import DECISION
from solver.errors import SolverError
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.record import PartCache
from tests.draw.crowds import world
from tests.draw.drawn import drawn
from tests.draw.neighbours import neighbourhood

Answers = dict[str, list[str]]
"""By case: the Problem's hash, and what was decided."""
EVERYTHING_ON = Features(**dict.fromkeys(Features.__struct_fields__, True))
NO_TAINTS = Features(device_taints=False, partitionable_devices=False)


def problems_of(seed: int, evaluator: SelectorEvaluator) -> Iterator[Problem]:
    """Draw three worlds and ask of each: for all gangs, for some, by other rules."""
    crowd = world(seed, nodes=(3, 6), gangs=(2, 6)).problem
    others = neighbourhood(seed)
    for problem in (drawn(seed, evaluator, nodes=2 + seed % 3)[0], crowd, others):
        for gangs in (problem.gangs, problem.gangs[1:], problem.gangs[::-1]):
            yield _asked(problem, gangs, problem.parameters.features)
        for features in (EVERYTHING_ON, NO_TAINTS):
            yield _asked(problem, problem.gangs, features)


def _asked(
    problem: Problem, gangs: tuple[GangPart, ...], features: Features
) -> Problem:
    parameters = structs.replace(problem.parameters, features=features)
    return Problem(
        problem.pages,
        gangs,
        problem.selectors,
        parameters,
        problem.expected,
        neighbours=problem.neighbours,
        quotas=problem.quotas,
    )


def answers(problems: Iterable[tuple[str, Problem]]) -> Answers:
    """Decide Problems one after the other."""
    return {case: [problem.hash, _decided(problem)] for case, problem in problems}


def _decided(problem: Problem) -> str:
    try:
        return DECISION.encode(allocate(problem)).decode()
    except SolverError as error:
        return f"{type(error).__name__}: {error}"


def cases(seeds: Iterable[int]) -> Iterator[tuple[str, Problem]]:
    """Draw the Problems of some seeds, each under a name of its own."""
    with SelectorEvaluator() as evaluator:
        for seed in seeds:
            for number, problem in enumerate(problems_of(seed, evaluator)):
                yield f"{seed}-{number}", problem


def reread(problems: Iterable[tuple[str, Problem]]) -> Iterator[tuple[str, Problem]]:
    """Read Problems as a worker does: what the last one had is not read again."""
    cache = PartCache()
    for case, problem in problems:
        pages = {page.sha: page.data for page in problem.pages}
        yield case, cache.problem(problem.data, pages)


if __name__ == "__main__":
    Cache.is_on = False
    print(json.dumps(answers(cases(map(int, sys.argv[1:])))))  # noqa: T201  # its answer
