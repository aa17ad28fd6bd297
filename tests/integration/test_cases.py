"""The kept cases: what upstream answers to each, and we."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.oracles.differential.compare import compare
from tests.oracles.differential.draw import Json
from tests.oracles.differential.kept import Kept, kept, unexpected
from tests.oracles.differential.lines import answer_of, plan_line
from tests.oracles.differential.oracle import answers

KEPT = kept()


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


@pytest.fixture(scope="module")
def theirs(upstream_oracle: Path) -> dict[str, Json]:
    found = answers(upstream_oracle, [item.case for item in KEPT])
    return {answer["id"]: answer for answer in found}


@pytest.mark.parametrize("item", KEPT, ids=lambda item: item.name)
def test_we_answer_as_expected(item: Kept, planner: Planner) -> None:
    (line,) = plan_lines([plan_line(item.case)], planner)
    assert unexpected(answer_of(json.loads(line)), item.expect) == ""


@pytest.mark.parametrize("item", KEPT, ids=lambda item: item.name)
def test_upstream_answers_as_expected_and_as_we(
    item: Kept, planner: Planner, theirs: dict[str, Json]
) -> None:
    answer = theirs[item.name]
    assert unexpected(answer, item.expect) == ""
    (line,) = plan_lines([plan_line(item.case)], planner)
    assert compare(answer, answer_of(json.loads(line))) == []
