"""Upstream's allocator and ours answer random cases alike, device for device."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from contracts.features import DEFAULT_VERSION
from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.lab.go_program import NO_GO
from tests.lab.soak import SOAK, sized
from tests.oracles.differential import generate
from tests.oracles.differential.compare import compare
from tests.oracles.differential.draw import Json
from tests.oracles.differential.known import KNOWN, KNOWN_138, KnownDifference
from tests.oracles.differential.lines import answer_of, plan_line
from tests.oracles.differential.oracle import Oracle, answers
from tests.oracles.differential.shrink import shrink
from tests.oracles.upstream_oracle import built_138

CASES = sized(500, 12_000)
AT_ONCE = 250
SHRUNK = 3
SHRINK_S = 20.0


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


class Upstream(NamedTuple):
    """An allocator of upstream, and what of it we know to be otherwise."""

    program: Path
    release: str = DEFAULT_VERSION
    known: tuple[KnownDifference, ...] = KNOWN

    def ours(self, planner: Planner, case: Json) -> Json:
        """Answer a case as a cluster of this release."""
        (line,) = plan_lines([plan_line(case, self.release)], planner)
        return answer_of(json.loads(line))

    def differences(self, case: Json, theirs: Json, found: Json) -> list[str]:
        """List what is otherwise and not known to be."""
        if any(known.applies(case, theirs, found) for known in self.known):
            return []
        return compare(theirs, found)


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_upstream_and_we_answer_alike(
    first: int, planner: Planner, upstream_oracle: Path
) -> None:
    check(first, planner, Upstream(upstream_oracle))


@pytest.mark.skipif(not SOAK, reason="1.38 is built from a pre-release: make soak")
@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_upstream_of_138_and_we_answer_alike(first: int, planner: Planner) -> None:
    program = built_138()
    if program is None:
        pytest.skip(NO_GO)
    check(first, planner, Upstream(program, "1.38", KNOWN + KNOWN_138))


def check(first: int, planner: Planner, upstream: Upstream) -> None:
    seeds = range(first, first + AT_ONCE)
    cases = [generate(seed) for seed in seeds]
    told: list[str] = []
    for seed, case, theirs in zip(
        seeds, cases, answers(upstream.program, cases), strict=True
    ):
        if theirs["outcome"] == "aborted":
            continue
        assert theirs["outcome"] != "badCase", theirs["error"]
        if found := upstream.differences(case, theirs, upstream.ours(planner, case)):
            small = _small(case, planner, upstream) if len(told) < SHRUNK else "..."
            told.append(f"seed {seed}: {'; '.join(found)}\n{small}")
    assert not told, f"{len(told)} of {AT_ONCE} differ\n" + "\n".join(told)


def _small(case: Json, planner: Planner, upstream: Upstream) -> str:
    """Shrink a case for as long as people wait; keep which outcomes it had."""
    deadline = time.monotonic() + SHRINK_S
    with Oracle(upstream.program) as oracle:
        wanted = (
            oracle.answer(case)["outcome"],
            upstream.ours(planner, case)["outcome"],
        )

        def differs(other: Json) -> bool:
            if time.monotonic() > deadline:
                return False
            theirs, found = oracle.answer(other), upstream.ours(planner, other)
            outcomes = theirs["outcome"], found["outcome"]
            differing = upstream.differences(other, theirs, found)
            return outcomes == wanted and bool(differing)

        return json.dumps(shrink(case, differs))
