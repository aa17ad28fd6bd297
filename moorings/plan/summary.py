"""A Plan in a few lines: each reason once with its gangs, and counts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from contracts.counts import counted
from moorings.plan.plan import ClaimPlan, GangPlan, Plan
from moorings.views.names import name_some

MOST_CLAIMS = 60
"""A larger plan is shown by its counts, unless --all is given."""
SUMMARY_COLUMNS = ("verdict", "gangs", "pods", "claims", "devices", "nodes")


def is_large(plan: Plan) -> bool:
    """True if it has too many claims to list."""
    return len(plan.claims) > MOST_CLAIMS


def summarize(plan: Plan) -> Iterator[tuple[object, ...]]:
    """Return a row for each verdict, in the order in which they occur."""
    gangs: defaultdict[str, list[GangPlan]] = defaultdict(list)
    for gang in plan.gangs:
        gangs[gang.verdict].append(gang)
    claims: defaultdict[str, list[ClaimPlan]] = defaultdict(list)
    for claim in plan.claims:
        claims[claim.verdict].append(claim)
    for verdict in dict.fromkeys((*gangs, *claims)):
        own = claims[verdict]
        yield (
            verdict,
            len(gangs[verdict]),
            len({(c.namespace, c.gang, c.member, c.index) for c in own}),
            len(own),
            sum(len(c.allocation.devices.results) for c in own if c.allocation),
            len({c.node for c in own if c.node}),
        )


def group_reasons(gangs: Iterable[GangPlan]) -> Iterator[str]:
    """Write each reason once, with the gangs that have it."""
    names: dict[str, dict[str, None]] = {}
    gangs = list(gangs)
    # In one namespace the name alone is what people call it.
    is_one = len({gang.namespace for gang in gangs}) == 1
    for gang in gangs:
        for reason in gang.reasons:
            names.setdefault(str(reason), {})[f"{gang.namespace}/{gang.name}"] = None
    for text, own in names.items():
        short = [n.partition("/")[2] for n in own] if is_one else list(own)
        count = f"{counted(len(own), 'gang')} ({name_some(short)})"
        yield f"{short[0] if len(own) == 1 else count}: {text}"
