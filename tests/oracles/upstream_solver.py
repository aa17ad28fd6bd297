"""Answers upstream's cases with our planner: a case a line in, an answer a line out.

Run by upstream's table tests in place of their allocator.
"""

from __future__ import annotations

import json
import sys

from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.oracles.differential.draw import Json
from tests.oracles.upstream_cases import answer_of, plan_line


def main() -> None:
    with SelectorEvaluator() as evaluator:
        planner = Planner(evaluator)
        for line in sys.stdin.buffer:
            case: Json = json.loads(line)
            (found,) = plan_lines([json.dumps(plan_line(case)).encode()], planner)
            answer = {"id": case["id"], **answer_of(json.loads(found))}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
