"""What-if of a recorded solve: what would have been decided then. Pure.

A record has the devices and nodes, what is taken of them, and the gangs of its batch.
It does not say who holds what, so of gangs only those of the batch can be left out.
"""

from __future__ import annotations

from contracts.device import DeviceTaint
from contracts.ids import DeviceID, NodeName
from moorings.errors import BadInputError, UnknownNameError, UsageError
from moorings.what_if.answer import (
    Forecasts,
    GangFate,
    WhatIfAnswer,
    compare_fates,
    count_pods,
    name_devices,
)
from moorings.what_if.changes import TAINT, Changes
from solver.allocate import allocate
from solver.decision import DECISION, Decision
from solver.problem.problem import Problem
from solver.record import Recorded, sha_of
from solver.snapshot.parts import NodePart, PoolPart
from solver.timeline.altered import with_nodes, with_taint, without_nodes


def answer_recorded(recorded: Recorded, changes: Changes) -> WhatIfAnswer:
    """Solve a recorded question with changes, and put both answers side by side.

    Raises:
        UsageError: a change cannot be asked of a record.
        UnknownNameError: something that changes is not in the record.
        BadInputError: the solve has no answer yet.
        RecordError: the record is incomplete or was changed.
    """
    if changes.quotas:
        raise UsageError("--quota cannot be asked of a recorded solve")
    if not recorded.decision:
        raise BadInputError(recorded.opened.solve, "has no answer yet")
    problem = recorded.problem()
    before = DECISION.decode(recorded.decision)
    after = allocate(change_problem(problem, changes))
    hashes = Forecasts(
        before=(sha_of(recorded.decision),), after=(sha_of(DECISION.encode(after)),)
    )
    return compare_fates(_list_fates(before), _list_fates(after), hashes)


def change_problem(problem: Problem, changes: Changes) -> Problem:
    """Ask a recorded question with changes.

    Added nodes have as much CPU and memory left as the one that they are like.

    Raises:
        UnknownNameError: something that changes is not in the record.
    """
    _check_known(problem, changes)
    for like, count in changes.add_nodes.items():
        problem = with_nodes(problem, like, count, {})
    problem = without_nodes(problem, changes.without_nodes)
    taint = DeviceTaint(key=TAINT, effect="NoSchedule")
    problem = with_taint(problem, changes.taint, taint)
    named = {f"{gang.namespace}/{gang.name}": gang for gang in problem.gangs}
    left = list(problem.gangs)
    for name in changes.free:
        found = [
            gang for full, gang in named.items() if name in {full, gang.name, gang.uid}
        ]
        if len(found) != 1:
            raise UnknownNameError("gang of this solve", name, sorted(named)[:3])
        left = [gang for gang in left if gang.key != found[0].key]
    return problem.with_gangs(tuple(left))


def _check_known(problem: Problem, changes: Changes) -> None:
    values = [part.value for page in problem.pages for part in page.parts()]
    nodes = {value.name for value in values if isinstance(value, NodePart)}
    for node in (*changes.without_nodes, *changes.add_nodes):
        if NodeName(node) not in nodes:
            raise UnknownNameError("node of this solve", node, sorted(nodes)[:3])
    devices = {
        DeviceID(value.driver, value.pool, device.name)
        for value in values
        if isinstance(value, PoolPart)
        for device in value.devices
    }
    for device in changes.taint:
        if device not in devices:
            known = sorted(map(str, devices))[:3]
            raise UnknownNameError("device of this solve", str(device), known)


def _list_fates(decision: Decision) -> dict[str, GangFate]:
    return {
        f"{gang.namespace}/{gang.name}": GangFate(
            verdict=gang.verdict if gang.members or gang.rejected else "waits",
            pods=count_pods(pod.node for pod in gang.members),
            devices=name_devices(gang.members),
            reasons=tuple(map(str, gang.reasons)),
        )
        for gang in decision.gangs
    }
