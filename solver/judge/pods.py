"""What a pod needs: a node that may be used, and each claim served there.

Single devices are judged in `devices.py`, what is written down in `results.py`.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Sequence

from msgspec import Struct

from contracts.allocation import DeviceRequestAllocationResult
from contracts.claim import DeviceConstraint
from contracts.ids import DeviceID
from contracts.messages import MemberAllocated
from solver.judge.devices import judge_device, judge_device_alone
from solver.judge.facts import DeviceFacts, Facts, Violations
from solver.judge.nodes import judge_node
from solver.judge.results import results_are_written
from solver.judge.uses import Use
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)

LIMIT = 32


class ServedRequest(Struct, frozen=True):
    """The devices that one request of a pod got."""

    subrequest: SubrequestPart
    rank: int
    names: tuple[str, str]
    """By which constraints may mean it: the request's, and that of its results."""
    devices: tuple[DeviceID, ...]
    facts: tuple[DeviceFacts | None, ...]
    """What there is to know of each device; None: it cannot be allocated there."""
    results: Sequence[DeviceRequestAllocationResult]
    """What is written of each device."""


def _result_name(request: RequestPart, alternative: SubrequestPart) -> str:
    """Name a request as results do: with the alternative, if it has names for them."""
    if not alternative.name:
        return request.name
    return f"{request.name}/{alternative.name}"


def _rank_without_devices(request: RequestPart) -> int:
    """Find the alternative of a request without devices: the first that asks for none.

    Where each asks for some it is the first, which then has too few.
    """
    for rank, alternative in enumerate(request.alternatives):
        if not alternative.count:
            return rank
    return 0


class PodJudge:
    """One pod: its node may be used, and each claim is served there.

    Read `violations` to the end first: it fills `uses` and `rank`.
    """

    def __init__(
        self,
        facts: Facts,
        gang: GangPart,
        pod: MemberAllocated,
        *,
        shared: Container[str] = (),
        subject: str = "",
    ) -> None:
        """`shared` claims, by name, are not judged with the pod."""
        self._facts = facts
        self._pod = pod
        self._shared = shared
        self._subject = subject or f"{gang.name}/{pod.member}/{pod.index}"
        self._part: MemberPart | None = None
        for member in gang.members:
            if member.name == pod.member:
                self._part = member
        self.uses: list[Use] = []
        self.rank = 0

    @property
    def part(self) -> MemberPart | None:
        """What the pod asks for; None: it is no member of its gang."""
        return self._part

    def violations(self) -> Violations:
        """List what is wrong with the pod."""
        node, subject = self._facts.find_node(self._pod.node), self._subject
        if self._part is None:
            return
        # First the node.
        if node.unavailable:
            yield f"nodeUsable: {subject} is on {node.name}, {node.unavailable}"
        if not self._facts.has_node(node.name):
            yield f"nodeUsable: {subject} is on {node.name}, which does not exist"
        if not self._facts.is_readable(node.name):
            yield f"nodeUsable: {subject} is on {node.name}, whose slices are malformed"
        yield from judge_node(node, self._part, subject)
        # Then claim by claim; each of the pod is there, in order.
        claims = self._part.claims
        if [c.name for c in claims] != [c.claim for c in self._pod.claims]:
            yield f"gangIsWhole: {subject} has other claims than it asked for"
            return
        for number, claim in enumerate(claims):
            if claim.claim_name not in self._shared:
                yield from self.claim(claim, number)

    def claim(self, claim: ClaimPart, number: int) -> Violations:
        """List what is wrong with one claim; `number`: its place in the pod."""
        where = f"{self._subject}/{claim.name}"
        served, devices = self._serve_request(claim, number)
        if served is None or sum([len(each.devices) for each in served]) != devices:
            yield f"requestKnown: {where} has results for other requests"
            return
        if devices > LIMIT:
            yield f"claimLimit: {where} holds more than {LIMIT} devices"
        all_exist = yield from self._judge_devices(claim, number, served, where)
        # Constraints and results compare what devices say, so all must exist.
        if all_exist:
            for constraint in claim.constraints:
                yield from self._judge_constraint(constraint, served, where)
            yield from results_are_written(
                self._facts,
                claim,
                [(each.subrequest, each.rank) for each in served],
                [
                    (each.subrequest, result, facts)
                    for each in served
                    for result, facts in zip(each.results, each.facts, strict=True)
                    if facts is not None
                ],
                (self._pod.node, self._pod.claims[number].allocation, where),
            )

    def _serve_request(
        self, claim: ClaimPart, number: int
    ) -> tuple[list[ServedRequest] | None, int]:
        """Sort the results of a claim by request; None: an alternative is unclear."""
        results = self._pod.claims[number].allocation.devices.results
        results_by_name: dict[str, list[DeviceRequestAllocationResult]] = {}
        for result in results:
            results_by_name.setdefault(result.request, []).append(result)
        served, find, node = [], self._facts.find_device, self._pod.node
        for request in claim.requests:
            names = [_result_name(request, each) for each in request.alternatives]
            taken = [rank for rank, name in enumerate(names) if name in results_by_name]
            if len(taken) > 1:
                return None, len(results)
            rank = taken[0] if taken else _rank_without_devices(request)
            self.rank += rank
            said = results_by_name.get(names[rank], ())
            devices = tuple([result.device_id for result in said])
            served.append(
                ServedRequest(
                    request.alternatives[rank],
                    rank,
                    (request.name, names[rank]),
                    devices,
                    tuple([find(node, device) for device in devices]),
                    said,
                )
            )
        return served, len(results)

    def _judge_devices(
        self, claim: ClaimPart, number: int, served: list[ServedRequest], where: str
    ) -> Generator[str, None, bool]:
        """Judge each device on its own; returns whether all of them exist here."""
        all_exist, node = True, self._pod.node
        for position, each in enumerate(served):
            subject = f"{where}/{claim.requests[position].name}"
            yield from self._judge_count(each, subject)
            for name, facts in zip(each.devices, each.facts, strict=True):
                if facts is None:
                    all_exist = False
                    if self._facts.has_device(name):
                        yield f"oneNode: {subject} has {name}, not to be had on {node}"
                    else:
                        yield f"deviceExists: {subject} has {name}, unknown"
                    continue
                yield from judge_device(
                    self._facts, node, each.subrequest, (name, facts), subject
                )
                use = Use(
                    pod=self._subject,
                    node=node,
                    device=name,
                    claim=number,
                    request=position,
                    subrequest=each.subrequest,
                    facts=facts,
                )
                self.uses.append(use)
        return all_exist

    def _judge_count(self, served: ServedRequest, subject: str) -> Violations:
        """A request has as many devices as it asks for, or all that it means."""
        subrequest = served.subrequest
        if len(set(served.devices)) < len(served.devices):
            yield f"devicesDiffer: {subject} has a device twice"
        if not subrequest.all_devices:
            if len(served.devices) != subrequest.count:
                yield f"requestsFilled: {subject} has {len(served.devices)} devices"
            return
        meant: set[DeviceID] = set()
        for pool, visible in self._facts.pools_of(self._pod.node):
            if not visible.usable:
                yield f"allDevices: {subject} is where {pool} is not whole"
            for name, (device, _) in visible.devices.items():
                device_id = DeviceID(pool.driver, pool.pool, device.name)
                selected = self._facts.is_selected(subrequest, pool.driver, device)
                if selected is None:
                    yield f"allDevices: {subject} is where a selector fails on {name}"
                elif selected and self._is_meant(subrequest, device_id):
                    meant.add(device_id)
        if set(served.devices) != meant or not meant:
            yield f"allDevices: {subject} has not all devices of {self._pod.node}"

    def _is_meant(self, subrequest: SubrequestPart, name: DeviceID) -> bool:
        node = self._pod.node
        facts = self._facts.find_device(node, name)
        if facts is None:
            return False
        alone = judge_device_alone(self._facts, node, subrequest, (name, facts), "")
        return not list(alone)

    def _judge_constraint(
        self, constraint: DeviceConstraint, served: list[ServedRequest], where: str
    ) -> Violations:
        """All devices in scope have the attribute: one in common, or none twice."""
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        scope = set(constraint.requests)
        values = [
            self._facts.compared_values(
                each.subrequest, name, device.driver, facts.device
            )
            for each in served
            if not scope or not scope.isdisjoint(each.names)
            for device, facts in zip(each.devices, each.facts, strict=True)
            if facts is not None
        ]
        if not all(values):
            yield f"attributePresent: {where} has a device without {name}"
        elif constraint.match_attribute is not None:
            if values and not set.intersection(*values):
                yield f"attributesMatch: {where} has no value of {name} in common"
        elif len(set().union(*values)) < sum(map(len, values)):
            yield f"attributesDistinct: {where} repeats a value of {name}"
