"""Which changes are worth trying for a gang that waits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from contracts.counts import counted, listed
from contracts.ids import GangKey
from contracts.names import UNHEALTHY
from moorings.console.what_if import WhatIf
from solver.decision import Decision
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.selectors.drivers import driver_of
from solver.snapshot.parts import NodePart, PoolPart, UsePart

ADDED = (1, 2, 3, 4, 8)
"""Nodes that are added, as long as fewer do not help."""
MOST_ENDED = 6
"""Gangs that are tried to be ended, one at a time."""


class Proposal(Struct, frozen=True, kw_only=True):
    """A change that may help, in words; of one sort the first that helps is enough."""

    sort: str
    text: str
    what_if: WhatIf


class Holder(Struct, frozen=True, kw_only=True):
    """A gang that holds devices."""

    name: str
    """`namespace/name`."""
    priority: int
    devices: int


def narrow(problem: Problem, decision: Decision, gang: GangKey) -> Problem:
    """Leave of a batch the gangs that matter to one: those ahead, those that are in."""
    placed = {each.key for each in decision.gangs if not each.reasons}
    gangs: list[GangPart] = []
    is_ahead = True
    for part in problem.gangs:
        if is_ahead or part.key in placed:
            gangs.append(part)
        is_ahead = is_ahead and part.key != gang
    return problem.with_gangs(tuple(gangs))


def propose(
    problem: Problem, decision: Decision, gang: GangPart, holders: Sequence[Holder]
) -> Iterator[Proposal]:
    """Go through the changes to try, those that cost least first."""
    if sick := _count_sick(problem):
        text = f"{sick} well again"
        yield Proposal(sort="heal", text=text, what_if=WhatIf(heal=True))
    placed = {each.uid for each in decision.gangs if not each.reasons}
    beside = {
        f"{part.namespace}/{part.name}": str(part.uid)
        for part in problem.gangs
        if part.uid in placed and part.uid != gang.uid
    }
    yield from _propose_ends(gang, holders, beside)
    if like := _find_model(problem, gang):
        for count in ADDED:
            text = f"{counted(count, 'more node')} like {like}"
            yield Proposal(
                sort="nodes", text=text, what_if=WhatIf(add_nodes=count, like=like)
            )
    yield from _propose_fewer(gang)


def _propose_ends(
    gang: GangPart, holders: Iterable[Holder], beside: Mapping[str, str]
) -> Iterator[Proposal]:
    """End others: the least urgent first, and of those the one that holds most.

    `beside`: the uids of those that were decided with it; they held nothing before, so
    they are left out.
    """
    others = sorted(holders, key=lambda h: (h.priority, -h.devices, h.name))
    others = [h for h in others if h.name != f"{gang.namespace}/{gang.name}"]
    for holder in others[:MOST_ENDED]:
        text = f"gang {holder.name} ends (it holds {counted(holder.devices, 'device')})"
        yield Proposal(
            sort="end", text=text, what_if=_end_gangs((holder.name,), beside)
        )
    if len(others) > 1:
        names = tuple(holder.name for holder in others)
        text = f"all {counted(len(names), 'gang')} that hold devices end"
        yield Proposal(sort="end", text=text, what_if=_end_gangs(names, beside))


def _end_gangs(names: tuple[str, ...], beside: Mapping[str, str]) -> WhatIf:
    uids = tuple(beside[name] for name in names if name in beside)
    return WhatIf(end=names, leave_out=uids)


def _propose_fewer(gang: GangPart) -> Iterator[Proposal]:
    """Ask for fewer pods of the largest member, half as many each time."""
    member = max(gang.members, key=lambda m: m.count, default=None)
    count = member.count if member is not None else 1
    while member is not None and count > 1:
        count //= 2
        text = (
            f"{counted(count, 'pod')} of member {member.name} instead of {member.count}"
        )
        what_if = WhatIf(pods={f"{gang.uid}/{member.name}": count})
        yield Proposal(sort="fewer", text=text, what_if=what_if)


def _count_sick(problem: Problem) -> str:
    """Write how many devices are unhealthy, and how many nodes are silent."""
    devices = nodes = 0
    for page in problem.pages:
        for part in page.parts():
            match part.value:
                case UsePart(taints=taints):
                    devices += sum(taint.key == UNHEALTHY for _, taint in taints)
                case NodePart(unavailable=unavailable):
                    nodes += bool(unavailable)
                case _:
                    pass
    sick = ((devices, "unhealthy device"), (nodes, "silent node"))
    words = [counted(count, noun) for count, noun in sick if count]
    verb = "is" if devices + nodes == 1 else "are"
    return f"{listed(words)} {verb}" if words else ""


def _find_model(problem: Problem, gang: GangPart) -> str:
    """Find the node to add more of: that with most devices that the gang may want."""
    drivers = {
        driver_of(selector)
        for member in gang.members
        for claim in member.claims
        for request in claim.requests
        for selector in request.alternatives[0].selectors
    } - {None}
    best, most = "", 0
    for page in problem.pages:
        for part in page.parts():
            pool = part.value
            if not isinstance(pool, PoolPart) or not pool.node or pool.contested:
                continue
            fits = not drivers or pool.driver in drivers
            if fits and (len(pool.devices), best) > (most, pool.node):
                best, most = pool.node, len(pool.devices)
    return best
