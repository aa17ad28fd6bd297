"""Depth first through claims, requests, alternatives and devices: the first solution.

Every choice is tried in kube-scheduler's order, ascending inside a request, so the
result is the lexicographically first. Devices that are interchangeable with one that
failed at the same choice are not tried again: they would fail likewise.

Source: k8s.io/dynamic-resource-allocation/structured, allocateOne.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from contracts.allocation import MAX_DEVICES
from solver.engines.upstream.probe import first_solution, may_meet_errors
from solver.engines.upstream.state import State
from solver.engines.upstream.symmetry import Symmetry
from solver.engines.upstream.world import Ask, World, asks_of
from solver.errors import AbortedError, FatalError, ProbingWantedError, StepsSpentError
from solver.problem.problem import MemberPart, Problem

STEPS = 1_000_000
"""Choices tried for one pod on one node before the search gives up."""
PROBING = 2_000
"""Choices after which feasibility is probed instead, where no error can be met."""
LOOKING = 256
"""Choices between two looks at the clock."""
PATIENCE = 100
"""Choices after which interchangeable devices are looked for."""


class Outcome(Enum):
    """How a part of the search ends."""

    FOUND = "found"
    NONE = "none"
    TOO_MANY = "too many devices for the claim"


class Search:
    """The search for one pod on one node."""

    def __init__(
        self,
        problem: Problem,
        world: World,
        member: MemberPart,
        expired: Callable[[], bool],
    ) -> None:
        self._expired = expired
        self._problem = problem
        self._world = world
        self._member = member
        claims = self._claims = member.claims
        self._asks = asks_of(world, claims)
        self._state = State(world, claims)
        self._symmetry = Symmetry(world, self._state, self._asks)
        self._steps = 0
        self._held = [0] * len(claims)
        self.chosen: list[list[int]] = [[0] * len(c.requests) for c in claims]
        """Index of the alternative of each request."""
        self.devices: list[list[list[int]]] = [[[] for _ in c.requests] for c in claims]
        """The devices of each request."""

    def run(self) -> bool:
        """Find the first solution; False: there is none on this node.

        Raises:
            FatalError: kube-scheduler would abort.
            AbortedError: the time is over.
            StepsSpentError: too many choices.
        """
        if self._expired():
            raise AbortedError
        try:
            found = self._request(0, 0) is Outcome.FOUND
        except ProbingWantedError:
            found = self._probe()
        if found:
            return True
        if any(seen.view.invalid for seen in self._world.node.pools):
            raise FatalError("invalid resource pools were encountered", node_only=True)
        return False

    def ask(self, claim: int, request: int) -> Ask:
        """Look up the chosen alternative of a request."""
        return self._asks[claim][request][self.chosen[claim][request]]

    def _probe(self) -> bool:
        """Find the same solution by asking what is feasible."""
        found = first_solution(self._problem, self._world, self._member)
        if found is None:
            return False
        places = [(c, r) for c, asks in enumerate(self._asks) for r in range(len(asks))]
        for (c, r), rank, devices in zip(places, *found, strict=True):
            self.chosen[c][r] = rank
            self.devices[c][r] = devices
        return True

    def _request(self, c: int, r: int) -> Outcome:
        """Serve this request and all that follow."""
        if c == len(self._claims):
            return Outcome.FOUND
        if r == len(self._asks[c]):
            found = self._request(c + 1, 0)
            return Outcome.NONE if found is Outcome.TOO_MANY else found
        asks = self._asks[c][r]
        if not asks[0].part.name:
            return self._device(asks[0], 0, 0)
        outcome = Outcome.TOO_MANY
        for ask in asks:
            self.chosen[c][r] = ask.alternative
            found = self._device(ask, 0, 0)
            if found is Outcome.FOUND:
                return found
            if found is Outcome.NONE:
                outcome = Outcome.NONE
        return outcome

    def _device(self, ask: Ask, number: int, start: int) -> Outcome:
        """Find the next device of a (sub)request, then all that follows."""
        self._steps += 1
        if not self._steps % LOOKING and self._expired():
            raise AbortedError
        if self._steps == PROBING and not may_meet_errors(
            self._world, self._asks, self._state.constraints
        ):
            raise ProbingWantedError
        if self._steps > STEPS:
            raise StepsSpentError
        if ask.targets == ():
            return Outcome.NONE
        if number >= ask.count:
            return self._request(ask.claim, ask.request + 1)
        if ask.count - number > MAX_DEVICES - self._held[ask.claim]:
            return Outcome.TOO_MANY
        if ask.targets is not None:
            found = self._try(ask, number, ask.targets[number], must=True)
            return Outcome.NONE if found is None else found
        return self._any_device(ask, number, start)

    def _any_device(self, ask: Ask, number: int, start: int) -> Outcome:
        verdicts = self._world.verdicts(ask.part)
        failed: set[object] = set()
        for index in range(start, len(verdicts)):
            verdict = verdicts[index]
            if verdict is False or self._state.is_in_use(ask, index):
                continue
            if isinstance(verdict, str):
                claim = self._claims[ask.claim]
                raise FatalError(self._world.fault(ask, claim, index, verdict))
            if not self._state.fits(ask, index):
                continue
            keys = self._symmetry.keys(index) if self._steps > PATIENCE else ()
            if not failed.isdisjoint(keys):
                continue
            found = self._try(ask, number, index, must=False)
            if found is Outcome.FOUND or found is Outcome.TOO_MANY:
                return found
            failed.update(keys)
        return Outcome.NONE

    def _try(self, ask: Ask, number: int, index: int, *, must: bool) -> Outcome | None:
        """Give out one device and go on; None: it may not be given."""
        undo = self._state.take(ask, index, must=must)
        if undo is None:
            return None
        mine = self.devices[ask.claim][ask.request]
        mine.append(index)
        self._held[ask.claim] += 1
        found = self._device(ask, number + 1, index + 1)
        if found is not Outcome.FOUND:
            mine.pop()
            self._held[ask.claim] -= 1
            self._state.give_back(ask, undo)
        return found
