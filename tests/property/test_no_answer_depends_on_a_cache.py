"""Whatever is remembered, the answer is the same bytes as with nothing remembered.

One process decides with every cache off. This one decides the same Problems with all
caches as the other tests and the other Problems left them: in order, then in another
order and read page by page, as a worker does.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Hashable, Iterable
from typing import Any

import pytest

from solver.kinds.node_cache import NodeCache
from solver.problem.problem import Problem
from tests.lab.soak import sized
from tests.oracles.without_caches import Answers, answers, cases, reread

SEEDS = range(sized(4, 1_000))


def without_caches(seeds: Iterable[int]) -> Answers:
    program = [sys.executable, "-m", "tests.oracles.without_caches", *map(str, seeds)]
    done = subprocess.run(program, check=True, capture_output=True)
    expected: Answers = json.loads(done.stdout)
    return expected


@pytest.fixture(scope="module")
def expected() -> Answers:
    return without_caches(SEEDS)


@pytest.fixture(scope="module")
def problems() -> list[tuple[str, Problem]]:
    return list(cases(SEEDS))


def differing(found: Answers, expected: Answers) -> list[str]:
    return [case for case, answer in found.items() if answer != expected[case]]


def test_no_answer_depends_on_a_cache(
    problems: list[tuple[str, Problem]], expected: Answers
) -> None:
    """Warm from other questions about the same pages: the bytes of a cold process."""
    assert not differing(answers(problems), expected)
    mixed = random.Random(0).sample(problems, len(problems))
    assert not differing(answers(reread(mixed)), expected)


def test_the_cases_have_both_outcomes(expected: Answers) -> None:
    """Else nothing would be learnt: gangs get in, and gangs wait."""
    decided = [answer for _, answer in expected.values()]
    assert sum('"members":[' in answer for answer in decided) > 3 * len(SEEDS)
    assert sum('"reasons":[' in answer for answer in decided) > 3 * len(SEEDS)


def test_a_cache_that_forgets_its_question_is_found(
    monkeypatch: pytest.MonkeyPatch, expected: Answers
) -> None:
    """The law can fail: results are kept under less than what they depend on."""

    class Forgetful(NodeCache[Any]):
        def of(self, question: Hashable) -> dict[Any, Any]:
            del question
            return super().of("whatever was asked")

    monkeypatch.setattr("solver.explain.counts._COUNTS", Forgetful())
    assert differing(answers(cases(SEEDS)), expected)
