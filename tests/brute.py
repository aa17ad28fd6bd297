"""The best answer to a tiny Problem, by trying everything: the models' oracle.

Plain Python over the recorded facts; shares no code with candidates, kinds, models or
judge. Exponential on purpose; keep problems to a few nodes with a few devices each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from contracts.claim import DeviceToleration
from contracts.device import Device, DeviceTaint
from contracts.ids import DeviceID
from solver.problem.problem import ClaimPart, GangPart, MemberPart, Problem, RequestPart
from solver.snapshot.parts import NodePart, PoolPart, UsePart
from tests.problems import evaluate

Used = frozenset[DeviceID]
Value = tuple[int, ...]
"""Weight that is in, by priority, highest first."""


class Brute:
    """Everything there is to know of one tiny Problem."""

    def __init__(self, problem: Problem) -> None:
        self.gangs = [gang for gang in problem.gangs if not gang.refused]
        self.priorities = sorted({g.priority for g in problem.gangs}, reverse=True)
        self.taints: dict[DeviceID, tuple[DeviceTaint, ...]] = {}
        self.taken: set[DeviceID] = set()
        self.devices: dict[str, list[tuple[DeviceID, Device]]] = {}
        away = set()
        values = [part.value for page in problem.pages for part in page.parts.values()]
        for value in values:
            if isinstance(value, NodePart) and value.unavailable:
                away.add(value.name)
        for value in values:
            if isinstance(value, UsePart):
                self._add_use(value)
        for value in values:
            if isinstance(value, PoolPart) and value.node and value.node not in away:
                here = self.devices.setdefault(value.node, [])
                for device in value.devices:
                    name = DeviceID(value.driver, value.pool, device.name)
                    self.taints[name] = self.taints.get(name, ()) + device.taints
                    here.append((name, device))

    def _add_use(self, use: UsePart) -> None:
        self.taken |= {DeviceID(use.driver, use.pool, name) for name in use.taken}
        for name, taint in use.taints:
            device = DeviceID(use.driver, use.pool, name)
            self.taints[device] = (*self.taints.get(device, ()), taint)

    def value(self) -> Value:
        """Find the best value: lexicographic over the priorities."""

        @cache
        def best(index: int, used: Used) -> Value:
            if index == len(self.gangs):
                return (0,) * len(self.priorities)
            gang = self.gangs[index]
            found = best(index + 1, used)
            for more in set(self._gang(gang, used)):
                rest = list(best(index + 1, more))
                rest[self.priorities.index(gang.priority)] += gang.weight
                found = max(found, tuple(rest))
            return found

        return best(0, frozenset())

    def _gang(self, gang: GangPart, used: Used) -> Iterator[Used]:
        pods = [member for member in gang.members for _ in range(member.count)]
        states = {used}
        for pod in pods:
            states = {more for state in states for more in self._pod(pod, state)}
        return iter(states)

    def _pod(self, pod: MemberPart, used: Used) -> Iterator[Used]:
        for node in self.devices:
            states = {used}
            for claim in pod.claims:
                states = {more for s in states for more in self._claim(claim, node, s)}
            yield from states

    def _claim(self, claim: ClaimPart, node: str, used: Used) -> Iterator[Used]:
        def fill(index: int, chosen: list[tuple[DeviceID, ...]]) -> Iterator[Used]:
            taken = used.union(*chosen) if chosen else used
            if index == len(claim.requests):
                if self._constraints_hold(claim, chosen):
                    yield taken
                return
            for devices in self._options(claim.requests[index], node, taken):
                yield from fill(index + 1, [*chosen, devices])

        return fill(0, [])

    def _options(
        self, request: RequestPart, node: str, used: Used
    ) -> Iterator[tuple[DeviceID, ...]]:
        matching = [
            name
            for name, device in self.devices[node]
            if _matches(request, name, device)
        ]
        fit = [
            name
            for name in matching
            if name not in used
            and name not in self.taken
            and all(_tolerated(t, request.tolerations) for t in self.taints[name])
        ]
        if not request.all_devices:
            yield from combinations(fit, request.count)
        elif matching and fit == matching:
            yield tuple(fit)

    def _constraints_hold(
        self, claim: ClaimPart, chosen: list[tuple[DeviceID, ...]]
    ) -> bool:
        known = {name: d for here in self.devices.values() for name, d in here}
        for constraint in claim.constraints:
            scope = [
                name
                for request, names in zip(claim.requests, chosen, strict=True)
                if not constraint.requests or request.name in constraint.requests
                for name in names
            ]
            full = constraint.match_attribute or constraint.distinct_attribute or ""
            values = [_value(known[name], name.driver, full) for name in scope]
            different = len(set(values))
            if None in values:
                return False
            if constraint.match_attribute is not None and different > 1:
                return False
            if constraint.match_attribute is None and different < len(values):
                return False
        return True


def _matches(request: RequestPart, name: DeviceID, device: Device) -> bool:
    for selector in request.selectors:
        if evaluate(selector, name.driver, device).value is not True:
            return False
    return True


def _tolerated(taint: DeviceTaint, tolerations: tuple[DeviceToleration, ...]) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return True
    return any(
        t.effect in ("", taint.effect)
        and t.key in ("", taint.key)
        and (t.operator == "Exists" or t.value == taint.value)
        for t in tolerations
    )


def _value(device: Device, driver: str, full: str) -> tuple[str, object] | None:
    domain, _, short = full.partition("/")
    found = device.attributes.get(full)
    if found is None and domain == driver:
        found = device.attributes.get(short)
    if found is None:
        return None
    values = {
        "int": found.int_value,
        "bool": found.bool_value,
        "string": found.string_value,
        "version": found.version_value,
    }
    return next((item for item in values.items() if item[1] is not None), None)
