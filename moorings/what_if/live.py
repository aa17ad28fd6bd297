"""What-if of a cluster as the bus tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time
from typing import TypeVar

from contracts.features import DEFAULT_VERSION, nearest_release
from contracts.gang import Gang
from moorings.bus_client import Client, make_submission
from moorings.console.helping import ask_once
from moorings.console.model import ConsoleModel
from moorings.console.solving import Solving
from moorings.deciding import Evaluate, Judged
from moorings.plan.limits import read_features
from moorings.views.inventory import read_presence
from moorings.what_if.answer import WhatIfAnswer
from moorings.what_if.changes import Changes
from moorings.what_if.forecast import Settings, answer_what_if
from moorings.what_if.moves import Aim, MovesPlan, plan_moves
from solver.problem.problem import ROOT, Parameters
from solver.snapshot.snapshot import Snapshot
from solver.versions import VERSION

T = TypeVar("T")
LAST_SOLVES = 10
"""So many recorded solves tell how this cluster's solver decides."""


async def ask_live(
    client: Client,
    changes: Changes,
    gangs: Sequence[Gang],
    evaluate: Evaluate,
    patience_s: int,
) -> WhatIfAnswer:
    """Read all that a console reads, once, and decide it as it is and as it would be.

    Raises:
        UnknownNameError: something that changes is not there.
        BadInputError: a gang that is added cannot be submitted.
        CannotReadError: our user may not read all that a console shows.
    """

    def answer(snapshot: Snapshot, parameters: Parameters) -> WhatIfAnswer:
        how = Settings(
            cluster=client.cluster,
            parameters=parameters,
            judged=Judged(evaluate),
            patience_s=patience_s,
            now_s=int(time()),
        )
        added = [
            make_submission(gang, client.cluster, f"what-if-{number}")
            for number, gang in enumerate(gangs, start=1)
        ]
        return answer_what_if(snapshot, changes, added, how)

    return await _ask_of_live(client, answer)


async def plan_live_moves(client: Client, aim: Aim, evaluate: Evaluate) -> MovesPlan:
    """Read all that a console reads, once, and plan moves.

    Raises:
        UnknownNameError: no gang of that name waits.
        CannotReadError: our user may not read all that a console shows.
    """

    def answer(snapshot: Snapshot, parameters: Parameters) -> MovesPlan:
        return plan_moves(snapshot, parameters, Judged(evaluate), aim)

    return await _ask_of_live(client, answer)


async def _ask_of_live(
    client: Client, answer: Callable[[Snapshot, Parameters], T]
) -> T:
    async def ask(model: ConsoleModel, _: Solving) -> T:
        snapshot = read_presence(model.known)
        return answer(snapshot, await _read_parameters(client, model))

    return await ask_once(client, ask)


async def _read_parameters(client: Client, model: ConsoleModel) -> Parameters:
    """Read with what parameters this cluster's solver decides, from what is recorded.

    Questions about a time to come have narrower ones.
    """
    for entry in reversed(list(model.solves.values())[-LAST_SOLVES:]):
        if not entry.opened.is_promise:
            root = ROOT.decode(await client.bus.get_blob(entry.opened.problem))
            if root.parameters.version == VERSION:
                return root.parameters
    release = model.known.snapshot.release
    version = nearest_release(release) if release else DEFAULT_VERSION
    return Parameters(version=VERSION, features=read_features(version, {}))
