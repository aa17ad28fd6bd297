"""kube-scheduler's order: depth first, the lexicographically first solution.

For comparison and conformance, not for deciding well: pods one after the other, nodes
by name, first fit, never revisited. Within a pod every choice is: claims, requests and
devices in order, ascending inside a request. Selector errors are met only when the
search reaches the device (or at once, for `All`). Bounded by steps, so it may say that
it does not know.

Source: kubernetes/dynamic-resource-allocation, structured allocator.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.claim import DeviceConfiguration, DeviceConstraint
from contracts.device import Device
from contracts.ids import DeviceClassName, DeviceID, NodeName
from solver.decision import Decision, GangDecision, Statistics, Status
from solver.errors import SolverError
from solver.places import Place, Placed
from solver.problem.candidates import free, pool_of, selected, tolerated
from solver.problem.nodes import NodePools, attribute_of, attribute_value, nodes_of
from solver.problem.problem import ClaimPart, GangPart, Problem
from solver.results import members_allocated
from solver.snapshot.parts import ClassPart

STEPS = 500_000
"""Choices tried for one pod on one node before the search gives up."""
MAX_DEVICES = 32


class FatalError(SolverError):
    """What would abort kube-scheduler's attempt for all nodes, or (node) for this."""

    def __init__(self, message: str, *, node_only: bool = False) -> None:
        self.node_only = node_only
        super().__init__(message)


class StepsSpentError(SolverError):
    """The search was given up."""


class Candidate(Struct, frozen=True):
    """A device as one request sees it."""

    name: DeviceID
    device: Device
    index: int
    """Its place among all devices of the node."""
    matches: bool
    fault: str
    usable: bool
    """Free before this pod, and tolerated."""


class Slot(Struct, frozen=True):
    """One request of the pod."""

    claim: int
    name: str
    subject: str
    count: int
    all_devices: bool
    candidates: tuple[Candidate, ...]
    constraints: tuple[tuple[int, DeviceConstraint], ...]


def allocate_upstream(problem: Problem) -> Decision:
    """Decide as kube-scheduler would, gang by gang in the order of the Problem."""
    nodes = sorted(
        (node for page in problem.pages for node in nodes_of(page) if node.name),
        key=lambda node: node.name,
    )
    used: set[DeviceID] = set()
    decisions, unknown = [], False
    for gang in problem.gangs:
        bare = GangDecision(uid=gang.uid, namespace=gang.namespace, name=gang.name)
        if gang.refused:
            decisions.append(structs.replace(bare, reasons=gang.refused, failed=True))
            continue
        try:
            placed = _gang(problem, gang, nodes, used)
        except FatalError as error:
            facts = {"nodeOnly": 1} if error.node_only else {}
            reason = Reason(rule=Rule.INVALID, message=str(error), facts=facts)
            decisions.append(structs.replace(bare, reasons=(reason,), failed=True))
            continue
        except StepsSpentError:
            unknown = True
            message = f"no answer within {STEPS} steps"
            reason = Reason(rule=Rule.NOT_PROVEN, message=message)
            decisions.append(structs.replace(bare, reasons=(reason,)))
            continue
        if placed is None:
            message = "kube-scheduler's order finds no devices on any node"
            reason = Reason(rule=Rule.NO_CANDIDATE, message=message)
            decisions.append(structs.replace(bare, reasons=(reason,)))
            continue
        used.update(d for p in placed for found in p.devices for d in found)
        members = members_allocated(gang, _placed(gang, placed), _configs(problem))
        decisions.append(structs.replace(bare, members=members))
    return Decision(
        problem=problem.hash,
        status=Status.NOT_PROVEN if unknown else Status.FEASIBLE,
        objective=(),
        gangs=tuple(decisions),
        statistics=Statistics(),
    )


def _configs(
    problem: Problem,
) -> dict[DeviceClassName, tuple[DeviceConfiguration, ...]]:
    return {
        part.value.name: part.value.config
        for page in problem.pages
        for part in page.parts.values()
        if isinstance(part.value, ClassPart)
    }


def _placed(gang: GangPart, places: list[Place]) -> Placed:
    found = iter(places)
    return Placed(
        0, tuple(tuple(next(found) for _ in range(m.count)) for m in gang.members)
    )


def _gang(
    problem: Problem, gang: GangPart, nodes: list[NodePools], used: set[DeviceID]
) -> list[Place] | None:
    places: list[Place] = []
    held = set(used)
    for member in gang.members:
        for _ in range(member.count):
            place = None
            for node in nodes:
                if node.node is not None and node.node.unavailable:
                    continue
                place = _Search(problem, gang, member.claims, node, held).run()
                if place is not None:
                    break
            if place is None:
                return None
            places.append(place)
            held.update(device for found in place.devices for device in found)
    return places


class _Search:
    """The search for one pod on one node."""

    def __init__(
        self,
        problem: Problem,
        gang: GangPart,
        claims: tuple[ClaimPart, ...],
        node: NodePools,
        held: set[DeviceID],
    ) -> None:
        self._problem = problem
        self._gang = gang
        self._node = node
        self._held = held
        self._steps = 0
        self._slots = [s for i, claim in enumerate(claims) for s in self._of(i, claim)]
        self._chosen: list[list[Candidate]] = [[] for _ in self._slots]

    def run(self) -> Place | None:
        """Find the first solution.

        Raises:
            FatalError: kube-scheduler would abort.
            StepsSpentError: too many choices.
        """
        if self._fill(0):
            return Place(
                NodeName(self._node.name),
                tuple(tuple(c.name for c in found) for found in self._chosen),
            )
        if any(pool_of(part).invalid for part, _ in self._node.pools):
            raise FatalError("invalid resource pools were encountered", node_only=True)
        return None

    def _of(self, index: int, claim: ClaimPart) -> Iterator[Slot]:
        total = 0
        for request in claim.requests:
            subject = f"claim {self._claim_name(claim)}, request {request.name}"
            candidates = tuple(self._candidates(request.selectors, request.tolerations))
            if request.all_devices:
                candidates = self._all(candidates, subject)
            total += len(candidates) if request.all_devices else request.count
            if total > MAX_DEVICES:
                raise FatalError(
                    f"claim {self._claim_name(claim)}: number of requested devices "
                    f"{total} exceeds the claim limit of {MAX_DEVICES}"
                )
            yield Slot(
                claim=index,
                name=request.name,
                subject=subject,
                count=len(candidates) if request.all_devices else request.count,
                all_devices=request.all_devices,
                candidates=candidates,
                constraints=tuple(
                    (number, constraint)
                    for number, constraint in enumerate(claim.constraints)
                    if not constraint.requests or request.name in constraint.requests
                ),
            )

    def _claim_name(self, claim: ClaimPart) -> str:
        name = claim.claim_name or claim.name
        return f"{self._gang.namespace}/{name}" if self._gang.namespace else name

    def _candidates(
        self, selectors: tuple[str, ...], tolerations: tuple[object, ...]
    ) -> Iterator[Candidate]:
        index = 0
        for part, use in self._node.pools:
            pool = pool_of(part)
            if pool.incomplete or pool.invalid:
                continue
            found = selected(part, selectors, self._problem.selectors)
            faults = {fault.device: fault for fault in found.faults}
            usable = free(pool, use) & tolerated(pool, use, tolerations)  # type: ignore[arg-type]  # tolerations of a request
            for number, device in enumerate(pool.devices):
                name = DeviceID(pool.driver, pool.pool, device.name)
                fault = faults.get(number)
                text = ""
                if fault is not None:
                    text = f"selector #{fault.selector} on device {name}: {fault.error}"
                yield Candidate(
                    name,
                    device,
                    index,
                    bool(found.bits >> number & 1),
                    text,
                    bool(usable >> number & 1) and name not in self._held,
                )
                index += 1

    def _all(
        self, candidates: tuple[Candidate, ...], subject: str
    ) -> tuple[Candidate, ...]:
        """Fix the devices of a request for all, before any search."""
        for part, _ in self._node.pools:
            pool = pool_of(part)
            why = "being updated" if pool.incomplete else "invalid"
            if pool.incomplete or pool.invalid:
                raise FatalError(
                    f"{subject}: asks for all devices, but resource pool "
                    f"{pool.driver}/{pool.pool} is currently {why}"
                )
        for candidate in candidates:
            if candidate.fault:
                raise FatalError(candidate.fault)
        return tuple(candidate for candidate in candidates if candidate.matches)

    def _fill(self, number: int) -> bool:
        if number == len(self._slots):
            return True
        slot = self._slots[number]
        if slot.all_devices:
            return self._fill_all(number, slot)
        return self._fill_counted(number, slot, 0)

    def _fill_all(self, number: int, slot: Slot) -> bool:
        if not slot.candidates:
            return False
        chosen = self._chosen[number]
        for candidate in slot.candidates:
            if not candidate.usable or self._is_taken(candidate):
                chosen.clear()
                return False
            if not self._allowed(slot, candidate):
                raise FatalError(
                    f"{slot.subject}: cannot add device {candidate.name} because a "
                    "claim constraint would not be satisfied"
                )
            chosen.append(candidate)
        if self._fill(number + 1):
            return True
        chosen.clear()
        return False

    def _fill_counted(self, number: int, slot: Slot, start: int) -> bool:
        chosen = self._chosen[number]
        if len(chosen) == slot.count:
            return self._fill(number + 1)
        for place in range(start, len(slot.candidates)):
            self._steps += 1
            if self._steps > STEPS:
                raise StepsSpentError
            candidate = slot.candidates[place]
            if self._is_taken(candidate):
                continue
            if candidate.fault:
                raise FatalError(candidate.fault)
            if not candidate.matches or not candidate.usable:
                continue
            if not self._allowed(slot, candidate):
                continue
            chosen.append(candidate)
            if self._fill_counted(number, slot, place + 1):
                return True
            chosen.pop()
        return False

    def _is_taken(self, candidate: Candidate) -> bool:
        if candidate.name in self._held:
            return True
        return any(c.index == candidate.index for found in self._chosen for c in found)

    def _allowed(self, slot: Slot, candidate: Candidate) -> bool:
        """Say whether all constraints of the claim accept one more device."""
        for number, constraint in slot.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            value = _value(candidate, name)
            if value is None:
                return False
            others = [
                _value(other, name)
                for other_slot, found in zip(self._slots, self._chosen, strict=True)
                if other_slot.claim == slot.claim
                and number in {n for n, _ in other_slot.constraints}
                for other in found
            ]
            if constraint.match_attribute is not None:
                if any(other != value for other in others):
                    return False
            elif value in others:
                return False
        return True


def _value(candidate: Candidate, name: str) -> object:
    found = attribute_of(candidate.device, candidate.name.driver, name)
    return None if found is None else attribute_value(found)
