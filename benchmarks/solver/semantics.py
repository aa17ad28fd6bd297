"""Hard families and random cases: Moorings and upstream's Go allocator side by side.

    python -m benchmarks.solver.semantics [--size full] [--json FILE]

Own time of one case in each order, and upstream's as its oracle reports it; both
without process start. Without Go upstream's columns are empty.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Row, arguments, percentile, report
from benchmarks.worlds.hard_families import FAMILIES, SIZES, Json
from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.oracles.differential import generate
from tests.oracles.differential.lines import answer_of, plan_line
from tests.oracles.differential.oracle import answers
from tests.oracles.upstream_oracle import built

LIMIT_MS = 10_000
"""What kube-scheduler gives a pod on a node."""


def timed(planner: Planner, case: Json, order: str) -> tuple[str, float]:
    """Answer a case; gives the outcome and seconds."""
    line = json.loads(plan_line(case)) | {"order": order}
    data = json.dumps(line).encode()
    started = time.perf_counter()
    (answer,) = plan_lines([data], planner)
    seconds = time.perf_counter() - started
    return str(answer_of(json.loads(answer))["outcome"]), seconds


def family_rows(
    planner: Planner, oracle: Path | None, sizes: Sequence[int]
) -> list[Row]:
    """Measure every family at every size."""
    rows: list[Row] = []
    for name, family in FAMILIES.items():
        for size in sizes:
            case = family(size) | {"timeoutMs": LIMIT_MS}
            row: dict[str, str | float | int] = {"family": name, "n": size}
            if oracle:
                (theirs,) = answers(oracle, [case])
                row |= {
                    "upstream": theirs["outcome"],
                    "upstream ms": theirs["seconds"] * 1e3,
                }
            for order in ("upstream", "optimal"):
                outcome, seconds = timed(planner, case, order)
                row |= {order + " order": outcome, order + " order ms": seconds * 1e3}
            rows.append(row)
    return rows


def random_row(planner: Planner, oracle: Path | None, cases: int) -> Row:
    """Measure generated cases in `upstream` order."""
    made = [generate(seed) for seed in range(cases)]
    seconds = [timed(planner, case, "upstream")[1] for case in made]
    row: dict[str, str | float | int] = {
        "family": "generated cases",
        "n": cases,
        "upstream order": "all s, p50 ms, max ms",
        "upstream order ms": percentile(seconds, 0.5) * 1e3,
        "all s": sum(seconds),
        "max ms": max(seconds) * 1e3,
    }
    if oracle:
        theirs = [answer["seconds"] for answer in answers(oracle, made)]
        row |= {"upstream ms": percentile(theirs, 0.5) * 1e3}
    return row


def main() -> None:
    """Measure the families, then generated cases."""
    options = arguments(__doc__ or "")
    full = options.size == "full"
    oracle = built("oracle")
    with SelectorEvaluator() as evaluator:
        planner = Planner(evaluator)
        timed(planner, FAMILIES["F1 one request"](8), "optimal")  # starts the sandbox
        rows = family_rows(planner, oracle, SIZES if full else SIZES[:3])
        rows.append(random_row(planner, oracle, 10_000 if full else 500))
    report("semantics", options, rows)


if __name__ == "__main__":
    main()
