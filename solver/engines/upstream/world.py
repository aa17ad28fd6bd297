"""What one pod's requests are to the devices of one node, before anything is chosen.

Devices stand in the order in which kube-scheduler tries them. Faults of selectors and
amounts are kept where they happen: whether they matter depends on what the search
reaches.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from contracts.allocation import MAX_DEVICES
from contracts.device import Device
from contracts.ids import DeviceID
from contracts.quantity import Quantity
from solver.devices.candidates import (
    find_free,
    find_supported,
    find_tolerated,
    indices_of,
    is_shareable,
    select_devices,
    sum_shares,
)
from solver.devices.capacity_amounts import compute_consumed
from solver.devices.gather import NodePools
from solver.devices.pools import SeenPool
from solver.errors import AmountError, FatalError
from solver.problem.problem import ClaimPart, Problem, SubrequestPart


class Candidate(Struct, frozen=True):
    """A device of the node."""

    name: DeviceID
    device: Device
    pool: int
    """Index into the node's pools."""
    bit: int
    """Its place in the pool."""
    shareable: bool
    held: bool
    """By another claim, for itself."""
    shares: dict[str, int] | None
    """What shares of other claims consume; None: there are none."""
    supported: bool


class Ask(Struct, frozen=True):
    """One (sub)request of a claim."""

    claim: int
    request: int
    alternative: int
    part: SubrequestPart
    subject: str
    """`claim N, request R`, as errors begin."""
    names: tuple[str, ...]
    """By which constraints may mean it."""
    count: int
    targets: tuple[int, ...] | None
    """The devices that `All` must have; None: any `count` will do."""


class World:
    """The devices of a node for the claims of a pod."""

    def __init__(self, problem: Problem, namespace: str, node: NodePools) -> None:
        self.table = problem.selectors
        self.features = problem.parameters.features
        self.node = node
        self._namespace = namespace
        self._verdicts: dict[tuple[str, ...], list[bool | str]] = {}
        self._tolerated: dict[tuple[object, ...], list[bool]] = {}
        self._amounts: dict[tuple[object, ...], dict[str, Quantity] | None] = {}

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The devices in usable pools, in the order in which they are tried."""
        found = []
        for number, seen in enumerate(self.node.pools):
            if not seen.view.usable:
                continue
            found.extend(self._of_pool(number, seen))
        return tuple(found)

    def _of_pool(self, number: int, seen: SeenPool) -> list[Candidate]:
        view, features = seen.view, self.features
        available = find_free(seen, features)
        fit = find_supported(seen, self.node.node, features)
        shares = sum_shares(seen.use) if features.consumable_capacity else {}
        return [
            Candidate(
                name=DeviceID(view.driver, view.pool, view.devices[bit].name),
                device=view.devices[bit],
                pool=number,
                bit=bit,
                shareable=is_shareable(view.devices[bit], features),
                held=not available >> bit & 1,
                shares=shares.get(view.devices[bit].name),
                supported=bool(fit >> bit & 1),
            )
            for bit in indices_of(view.targeting)
        ]

    def claim_name(self, claim: ClaimPart) -> str:
        """Name a claim as errors do."""
        name = claim.claim_name or claim.name
        return f"{self._namespace}/{name}" if self._namespace else name

    def verdicts(self, asked: SubrequestPart) -> list[bool | str]:
        """Say of each device whether the selectors choose it; a text: they fail."""
        known = self._verdicts.get(asked.selectors)
        if known is None:
            known = self._verdicts[asked.selectors] = []
            found = {
                number: select_devices(seen.view.part, asked.selectors, self.table)
                for number, seen in enumerate(self.node.pools)
            }
            faults = {
                (number, fault.device): f"{fault.selector} {fault.error}"
                for number, item in found.items()
                for fault in item.faults
            }
            for item in self.candidates:
                view = self.node.pools[item.pool].view
                if item.device.binding_conditions and not self.features.device_binding:
                    known.append(False)
                elif (item.pool, item.bit) in faults:
                    known.append(faults[item.pool, item.bit])
                elif not found[item.pool].bits >> item.bit & 1:
                    known.append(False)
                elif item.bit in dict(view.malformed):
                    known.append(f"- {dict(view.malformed)[item.bit]}")
                else:
                    known.append(bool(view.reachable >> item.bit & 1))
        return known

    def fault(self, asked: Ask, claim: ClaimPart, index: int, verdict: str) -> str:
        """Word why it cannot be said whether a device is chosen."""
        number, _, error = verdict.partition(" ")
        if number == "-":
            return error
        own = int(number) - asked.part.class_selectors
        place = f"claim {self.claim_name(claim)}: selector #{own}"
        if own < 0:
            place = f"class {asked.part.device_class}: selector #{number}"
        if error.startswith("CEL compile error"):
            return f"{place}: {error}"
        return f"{place} on device {self.candidates[index].name}: {error}"

    def tolerates(self, asked: SubrequestPart) -> list[bool]:
        """Say of each device whether its taints let the request have it."""
        known = self._tolerated.get(asked.tolerations)
        if known is None:
            bits = [
                find_tolerated(seen, asked.tolerations, self.features)
                for seen in self.node.pools
            ]
            known = [bool(bits[c.pool] >> c.bit & 1) for c in self.candidates]
            self._tolerated[asked.tolerations] = known
        return known

    def amounts(self, asked: Ask, index: int) -> dict[str, Quantity] | None:
        """Compute what one use of a device consumes; None: it cannot do that.

        Raises:
            FatalError: kube-scheduler cannot compute it.
        """
        part, item = asked.part, self.candidates[index]
        if not self.features.consumable_capacity:
            return {}
        if not item.device.capacity and not part.capacity:
            return {}
        key = (index, tuple(sorted((n, q.nano) for n, q in part.capacity.items())))
        if key not in self._amounts:
            fractional = self.features.fractional_capacity_range
            try:
                found = compute_consumed(
                    item.device, part.capacity, fractional=fractional
                )
            except AmountError as error:
                raise FatalError(
                    f"{asked.subject}: checking capacity for device {item.name}: "
                    f"{error}"
                ) from error
            self._amounts[key] = found
        return self._amounts[key]


def asks_of(world: World, claims: tuple[ClaimPart, ...]) -> list[list[list[Ask]]]:
    """Check all requests as kube-scheduler does before it searches: by claim, request.

    Raises:
        FatalError: the first thing that is wrong.
    """
    found = []
    for c, claim in enumerate(claims):
        total, requests = 0, []
        for r, request in enumerate(claim.requests):
            if request.fault:
                raise FatalError(request.fault)
            asks = [
                _ask(world, claim, (c, r, a), sub)
                for a, sub in enumerate(request.alternatives)
            ]
            least = min(ask.count for ask in asks)
            if least > MAX_DEVICES - total:
                raise FatalError(
                    f"claim {world.claim_name(claim)}, request {request.name}: adding "
                    f"{least} devices exceeds the claim limit of {MAX_DEVICES}, with "
                    f"{total} already accounted for"
                )
            total += least
            requests.append(asks)
        if claim.fault:
            raise FatalError(claim.fault)
        found.append(requests)
    return found


def _ask(
    world: World, claim: ClaimPart, place: tuple[int, int, int], sub: SubrequestPart
) -> Ask:
    if sub.fault:
        raise FatalError(sub.fault)
    request = claim.requests[place[1]].name
    names = (request, f"{request}/{sub.name}") if sub.name else (request,)
    subject = f"claim {world.claim_name(claim)}, request {sub.name or request}"
    ask = Ask(*place, sub, subject, names, sub.count, None)
    if not sub.all_devices:
        return ask
    targets = _targets(world, claim, ask)
    return Ask(*place, sub, subject, names, len(targets), targets)


def _targets(world: World, claim: ClaimPart, ask: Ask) -> tuple[int, ...]:
    """Fix the devices of a request for all, pool by pool, before any search."""
    verdicts, found = world.verdicts(ask.part), []
    by_pool: dict[int, list[int]] = {}
    for index, item in enumerate(world.candidates):
        by_pool.setdefault(item.pool, []).append(index)
    for number, seen in enumerate(world.node.pools):
        if not seen.view.usable:
            why = "being updated" if seen.view.incomplete else "invalid"
            raise FatalError(
                f"{ask.subject}: asks for all devices, but resource pool "
                f"{seen.view.driver}/{seen.view.pool} is currently {why}"
            )
        for index in by_pool.get(number, ()):
            verdict = verdicts[index]
            if isinstance(verdict, str):
                raise FatalError(world.fault(ask, claim, index, verdict))
            if verdict and _is_large_enough(world, ask, index):
                found.append(index)
    return tuple(found)


def _is_large_enough(world: World, ask: Ask, index: int) -> bool:
    amounts = world.amounts(ask, index)
    if amounts is None:
        return False
    capacity = world.candidates[index].device.capacity
    return all(amount <= capacity[name].value for name, amount in amounts.items())
