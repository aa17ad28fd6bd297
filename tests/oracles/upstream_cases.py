"""A case of upstream's table as a line of `plan --jsonl`, and a Plan as its answer.

The translation itself is that of the random cases; what is added is what only the
table has: cases without a node, without lists, and with a time limit.
"""

from __future__ import annotations

import json

from tests.oracles.differential import lines
from tests.oracles.differential.draw import Json


def plan_line(case: Json) -> Json:
    """Write the case as `moorings plan --jsonl` reads it."""
    full = case | {
        "classes": case.get("classes") or [],
        "slices": case.get("slices") or [],
        "claims": case.get("claims") or [],
        "features": case.get("features") or {},
    }
    line: Json = json.loads(lines.plan_line(full))
    if timeout_ms := case.get("timeoutMs"):
        line["timeoutSeconds"] = timeout_ms / 1000
    return line


def answer_of(plan: Json) -> Json:
    """Say what a Plan decided, in the form of the table."""
    return lines.answer_of(plan)
