"""Depth first through claims, requests, alternatives and devices: the first solution.

Every choice is tried in kube-scheduler's order, ascending inside a request, so the
result is the lexicographically first. Devices that are interchangeable with one that
failed at the same choice are not tried again: they would fail likewise. A search that
takes long goes on by probes of what is feasible, which find the same solution.

Source: k8s.io/dynamic-resource-allocation/structured, allocateOne.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from contracts.allocation import MAX_DEVICES
from moorings.upstream.probe import first_solution, may_meet_errors
from moorings.upstream.state import State
from moorings.upstream.symmetry import Symmetry
from moorings.upstream.world import RequestData, World, check_requests
from solver.errors import AbortedError, FatalError, ProbingWantedError, StepsSpentError
from solver.problem.gangs import MemberPart
from solver.problem.problem import Problem

STEPS = 1_000_000
"""Choices tried for one pod on one node before the search gives up."""
PROBING = 2_000
"""Choices after which feasibility is probed instead, where no error can be met."""
LOOKING = 256
"""Choices between two checks of the clock."""
PATIENCE = 100
"""Choices after which interchangeable devices are looked for."""


class SearchOutcome(Enum):
    """How a part of the search ends."""

    FOUND = "found"
    NONE = "none"
    TOO_MANY = "too many devices for the claim"


class Search:
    """The search for one pod on one node: `run` it, then read what it chose.

    Each level serves one thing and calls the next for all that follows: a request, one
    of its devices, ..., the next request, ..., the next claim. So whoever returns FOUND
    has a whole solution, and whoever returns something else has undone its own choice.
    """

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
        self._requests = check_requests(world, claims)
        self._state = State(world, claims)
        self._symmetry = Symmetry(world, self._state, self._requests)
        self._steps = 0
        self._devices_of_claim = [0] * len(claims)
        """How many each claim has so far."""
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
            is_found = self._serve_request(0, 0) is SearchOutcome.FOUND
        except ProbingWantedError:
            is_found = self._search_by_probes()
        if is_found:
            return True
        # Pools that cannot be used matter only where the others do not suffice.
        if any(pool.invalid for pool in self._world.node.pools):
            raise FatalError("invalid resource pools were encountered", node_only=True)
        return False

    def chosen_request(self, claim: int, request: int) -> RequestData:
        """Look up the chosen alternative of a request."""
        return self._requests[claim][request][self.chosen[claim][request]]

    def _search_by_probes(self) -> bool:
        """Find the same solution by asking what is feasible."""
        solution = first_solution(self._problem, self._world, self._member)
        if solution is None:
            return False
        positions = [
            (claim, request)
            for claim, requests in enumerate(self._requests)
            for request in range(len(requests))
        ]
        for (claim, request), rank, devices in zip(positions, *solution, strict=True):
            self.chosen[claim][request] = rank
            self.devices[claim][request] = devices
        return True

    def _serve_request(self, claim: int, number: int) -> SearchOutcome:
        """Serve this request and all that follow."""
        if claim == len(self._claims):
            return SearchOutcome.FOUND
        if number == len(self._requests[claim]):
            # The limit of devices is one of each claim: the next one has its own.
            outcome = self._serve_request(claim + 1, 0)
            is_too_many = outcome is SearchOutcome.TOO_MANY
            return SearchOutcome.NONE if is_too_many else outcome
        alternatives = self._requests[claim][number]
        if not alternatives[0].part.name:
            return self._serve_device(alternatives[0], 0, 0)
        # Only where all alternatives are too many, another choice before may help.
        worst = SearchOutcome.TOO_MANY
        for request in alternatives:
            self.chosen[claim][number] = request.alternative
            outcome = self._serve_device(request, 0, 0)
            if outcome is SearchOutcome.FOUND:
                return outcome
            if outcome is SearchOutcome.NONE:
                worst = SearchOutcome.NONE
        return worst

    def _serve_device(
        self, request: RequestData, number: int, start: int
    ) -> SearchOutcome:
        """Find the next device of a (sub)request, then all that follows.

        `number` devices are chosen; the next one is `start` or later.
        """
        self._count_step()
        if request.targets == ():
            return SearchOutcome.NONE
        if number >= request.count:
            return self._serve_request(request.claim, request.request + 1)
        room = MAX_DEVICES - self._devices_of_claim[request.claim]
        if request.count - number > room:
            return SearchOutcome.TOO_MANY
        if request.targets is None:
            return self._try_devices(request, number, start)
        target = request.targets[number]
        outcome = self._try_device(request, number, target, must=True)
        return SearchOutcome.NONE if outcome is None else outcome

    def _count_step(self) -> None:
        """Count a choice, and leave the plain search where it takes too long."""
        self._steps += 1
        if not self._steps % LOOKING and self._expired():
            raise AbortedError
        if self._steps == PROBING and not may_meet_errors(
            self._world, self._requests, self._state.constraints
        ):
            raise ProbingWantedError
        if self._steps > STEPS:
            raise StepsSpentError

    def _try_devices(
        self, request: RequestData, number: int, start: int
    ) -> SearchOutcome:
        """Try the devices from `start` on, except those that would fail equally."""
        verdicts = self._world.verdicts_of(request.part)
        failed: set[object] = set()
        for index in range(start, len(verdicts)):
            verdict = verdicts[index]
            if verdict is False or self._state.is_in_use(request, index):
                continue
            if isinstance(verdict, str):
                claim = self._claims[request.claim]
                raise FatalError(self._world.fault(request, claim, index, verdict))
            if not self._state.fits(request, index):
                continue
            # What is interchangeable is costly to say, so only where it takes long.
            keys = self._symmetry.keys_of(index) if self._steps > PATIENCE else ()
            if not failed.isdisjoint(keys):
                continue
            outcome = self._try_device(request, number, index, must=False)
            if outcome is SearchOutcome.FOUND or outcome is SearchOutcome.TOO_MANY:
                return outcome
            failed.update(keys)
        return SearchOutcome.NONE

    def _try_device(
        self, request: RequestData, number: int, index: int, *, must: bool
    ) -> SearchOutcome | None:
        """Give out one device and go on; None: it may not be given."""
        undo = self._state.take(request, index, must=must)
        if undo is None:
            return None
        devices = self.devices[request.claim][request.request]
        devices.append(index)
        self._devices_of_claim[request.claim] += 1
        outcome = self._serve_device(request, number + 1, index + 1)
        if outcome is not SearchOutcome.FOUND:
            devices.pop()
            self._devices_of_claim[request.claim] -= 1
            self._state.give_back(request, undo)
        return outcome
