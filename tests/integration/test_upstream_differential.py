"""Upstream's allocator and ours answer random cases alike, device for device."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.lab.soak import sized
from tests.oracles.differential import generate
from tests.oracles.differential.compare import compare
from tests.oracles.differential.draw import Json
from tests.oracles.differential.known import KNOWN
from tests.oracles.differential.lines import answer_of, plan_line
from tests.oracles.differential.oracle import Oracle, answers
from tests.oracles.differential.shrink import shrink

CASES = sized(500, 12_000)
AT_ONCE = 250
SHRUNK = 3
SHRINK_S = 20.0


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


def ours(planner: Planner, case: Json) -> Json:
    (line,) = plan_lines([plan_line(case)], planner)
    return answer_of(json.loads(line))


def differences(case: Json, theirs: Json, found: Json) -> list[str]:
    if any(known.applies(case, theirs, found) for known in KNOWN):
        return []
    return compare(theirs, found)


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_upstream_and_we_answer_alike(
    first: int, planner: Planner, upstream_oracle: Path
) -> None:
    cases = [generate(seed) for seed in range(first, first + AT_ONCE)]
    told: list[str] = []
    for seed, case, theirs in zip(
        range(first, first + AT_ONCE),
        cases,
        answers(upstream_oracle, cases),
        strict=True,
    ):
        if theirs["outcome"] == "aborted":
            continue
        assert theirs["outcome"] != "badCase", theirs["error"]
        if found := differences(case, theirs, ours(planner, case)):
            small = (
                _small(case, planner, upstream_oracle) if len(told) < SHRUNK else "..."
            )
            told.append(f"seed {seed}: {'; '.join(found)}\n{small}")
    assert not told, f"{len(told)} of {AT_ONCE} differ\n" + "\n".join(told)


def _small(case: Json, planner: Planner, oracle: Path) -> str:
    """Shrink a case for as long as people wait; keep which outcomes it had."""
    deadline = time.monotonic() + SHRINK_S
    with Oracle(oracle) as upstream:
        wanted = upstream.answer(case)["outcome"], ours(planner, case)["outcome"]

        def differs(other: Json) -> bool:
            if time.monotonic() > deadline:
                return False
            theirs, found = upstream.answer(other), ours(planner, other)
            outcomes = theirs["outcome"], found["outcome"]
            return outcomes == wanted and bool(differences(other, theirs, found))

        return json.dumps(shrink(case, differs))
