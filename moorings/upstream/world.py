"""One pod's requests against the devices of one node, before any is chosen.

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
    spell_shares,
    sum_shares,
)
from solver.devices.capacity_amounts import compute_consumed, domain_of
from solver.devices.gather import NodePools
from solver.devices.pools import PoolView
from solver.errors import AmountError, FatalError
from solver.problem.gangs import ClaimPart, SubrequestPart
from solver.problem.problem import Problem


class NodeDevice(Struct, frozen=True):
    """A device of the node, before this pod takes any."""

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
    """Consumption by shares of other claims; None if there are none."""
    supported: bool


class RequestData(Struct, frozen=True):
    """One (sub)request of a claim, as kube-scheduler's own `requestData`."""

    claim: int
    request: int
    alternative: int
    """Indices; one request has several alternatives only where it lists them."""
    part: SubrequestPart
    subject: str
    """`claim N, request R`, as errors begin."""
    names: tuple[str, ...]
    """By which constraints may mean it."""
    count: int
    targets: tuple[int, ...] | None
    """The devices that `All` must have; None: any `count` will do."""


Requests = list[list[list[RequestData]]]
"""By claim, request and alternative."""


class World:
    """The devices of a node for the claims of a pod; each is named by its index."""

    def __init__(self, problem: Problem, namespace: str, node: NodePools) -> None:
        self.table = problem.selectors
        self.features = problem.parameters.features
        self.node = node
        self._namespace = namespace
        self._verdicts: dict[tuple[str, ...], list[bool | str]] = {}
        self._tolerated: dict[tuple[object, ...], list[bool]] = {}
        self._amounts: dict[tuple[object, ...], dict[str, Quantity] | None] = {}

    @cached_property
    def devices(self) -> tuple[NodeDevice, ...]:
        """The devices in usable pools, in the order in which they are tried."""
        devices = []
        for number, pool in enumerate(self.node.pools):
            if pool.usable:
                devices.extend(self._devices_of(number, pool))
        return tuple(devices)

    def _devices_of(self, number: int, pool: PoolView) -> list[NodeDevice]:
        features = self.features
        available = find_free(pool, features)
        fit = find_supported(pool, self.node.node, features)
        shares = sum_shares(pool.use) if features.consumable_capacity else {}
        domain = domain_of(pool.driver, features)
        shares = {
            device.name: spell_shares(shares[device.name], device, domain)
            for device in pool.devices
            if device.name in shares
        }
        return [
            NodeDevice(
                name=DeviceID(pool.driver, pool.pool, pool.devices[bit].name),
                device=pool.devices[bit],
                pool=number,
                bit=bit,
                shareable=is_shareable(pool.devices[bit], features),
                held=not available >> bit & 1,
                shares=shares.get(pool.devices[bit].name),
                supported=bool(fit >> bit & 1),
            )
            for bit in indices_of(pool.targeting)
        ]

    def claim_name(self, claim: ClaimPart) -> str:
        """Name a claim as errors do."""
        name = claim.claim_name or claim.name
        return f"{self._namespace}/{name}" if self._namespace else name

    def verdicts_of(self, subrequest: SubrequestPart) -> list[bool | str]:
        """List by device whether the selectors choose it; a text: why they fail."""
        verdicts = self._verdicts.get(subrequest.selectors)
        if verdicts is None:
            verdicts = self._judge_devices(subrequest)
            self._verdicts[subrequest.selectors] = verdicts
        return verdicts

    def _judge_devices(self, subrequest: SubrequestPart) -> list[bool | str]:
        selections = {
            number: select_devices(pool.part, subrequest.selectors, self.table)
            for number, pool in enumerate(self.node.pools)
        }
        faults = {
            (number, fault.device): f"{fault.selector} {fault.error}"
            for number, selection in selections.items()
            for fault in selection.faults
        }
        verdicts: list[bool | str] = []
        for device in self.devices:
            view = self.node.pools[device.pool]
            binds = bool(device.device.binding_conditions)
            is_chosen = selections[device.pool].bits >> device.bit & 1
            if binds and not self.features.device_binding:
                verdicts.append(False)
            elif (device.pool, device.bit) in faults:
                verdicts.append(faults[device.pool, device.bit])
            elif not is_chosen:
                verdicts.append(False)
            elif device.bit in dict(view.malformed):
                verdicts.append(f"- {dict(view.malformed)[device.bit]}")
            else:
                verdicts.append(bool(view.reachable >> device.bit & 1))
        return verdicts

    def fault(
        self, request: RequestData, claim: ClaimPart, index: int, verdict: str
    ) -> str:
        """Describe why a selector's verdict on a device is unknown."""
        number, _, error = verdict.partition(" ")
        if number == "-":
            return error
        own = int(number) - request.part.class_selectors
        place = f"claim {self.claim_name(claim)}: selector #{own}"
        if own < 0:
            place = f"class {request.part.device_class}: selector #{number}"
        if error.startswith("CEL compile error"):
            return f"{place}: {error}"
        return f"{place} on device {self.devices[index].name}: {error}"

    def tolerance_of(self, subrequest: SubrequestPart) -> list[bool]:
        """List by device whether its taints let the request have it."""
        tolerance = self._tolerated.get(subrequest.tolerations)
        if tolerance is None:
            bits = [
                find_tolerated(pool, subrequest.tolerations, self.features)
                for pool in self.node.pools
            ]
            tolerance = [bool(bits[d.pool] >> d.bit & 1) for d in self.devices]
            self._tolerated[subrequest.tolerations] = tolerance
        return tolerance

    def amounts_of(
        self, request: RequestData, index: int
    ) -> dict[str, Quantity] | None:
        """Compute what one use of a device consumes; None: it cannot do that.

        Raises:
            FatalError: kube-scheduler cannot compute it.
        """
        part, device = request.part, self.devices[index]
        if not self.features.consumable_capacity:
            return {}
        if not device.device.capacity and not part.capacity:
            return {}
        key = (index, tuple(sorted((n, q.nano) for n, q in part.capacity.items())))
        if key not in self._amounts:
            try:
                self._amounts[key] = compute_consumed(
                    device.device.capacity,
                    part.capacity,
                    fractional=self.features.fractional_capacity_range,
                    domain=domain_of(device.name.driver, self.features),
                )
            except AmountError as error:
                raise FatalError(
                    f"{request.subject}: checking capacity for device {device.name}: "
                    f"{error}"
                ) from error
        return self._amounts[key]


def check_requests(world: World, claims: tuple[ClaimPart, ...]) -> Requests:
    """Check all requests as kube-scheduler does before it searches.

    Raises:
        FatalError: the first thing that is wrong.
    """
    requests_by_claim: Requests = []
    for claim_index, claim in enumerate(claims):
        total, requests = 0, []
        for request_index, request in enumerate(claim.requests):
            if request.fault:
                raise FatalError(request.fault)
            alternatives = [
                _request_data(
                    world, claim, (claim_index, request_index, rank), subrequest
                )
                for rank, subrequest in enumerate(request.alternatives)
            ]
            least = min(alternative.count for alternative in alternatives)
            if least > MAX_DEVICES - total:
                raise FatalError(
                    f"claim {world.claim_name(claim)}, request {request.name}: adding "
                    f"{least} devices exceeds the claim limit of {MAX_DEVICES}, with "
                    f"{total} already accounted for"
                )
            total += least
            requests.append(alternatives)
        if claim.fault:
            raise FatalError(claim.fault)
        requests_by_claim.append(requests)
    return requests_by_claim


def _request_data(
    world: World,
    claim: ClaimPart,
    place: tuple[int, int, int],
    subrequest: SubrequestPart,
) -> RequestData:
    if subrequest.fault:
        raise FatalError(subrequest.fault)
    name = claim.requests[place[1]].name
    names = (name, f"{name}/{subrequest.name}") if subrequest.name else (name,)
    subject = f"claim {world.claim_name(claim)}, request {subrequest.name or name}"
    request = RequestData(*place, subrequest, subject, names, subrequest.count, None)
    if not subrequest.all_devices:
        return request
    targets = _list_targets(world, claim, request)
    return RequestData(*place, subrequest, subject, names, len(targets), targets)


def _list_targets(
    world: World, claim: ClaimPart, request: RequestData
) -> tuple[int, ...]:
    """Fix the devices of a request for all, pool by pool, before any search."""
    verdicts, targets = world.verdicts_of(request.part), []
    devices_by_pool: dict[int, list[int]] = {}
    for index, device in enumerate(world.devices):
        devices_by_pool.setdefault(device.pool, []).append(index)
    for number, pool in enumerate(world.node.pools):
        if not pool.usable:
            why = "being updated" if pool.incomplete else "invalid"
            raise FatalError(
                f"{request.subject}: asks for all devices, but resource pool "
                f"{pool.driver}/{pool.pool} is currently {why}",
                node_only=world.features.rules_of_138,
            )
        for index in devices_by_pool.get(number, ()):
            verdict = verdicts[index]
            if isinstance(verdict, str):
                raise FatalError(world.fault(request, claim, index, verdict))
            if verdict and _is_large_enough(world, request, index):
                targets.append(index)
    return tuple(targets)


def _is_large_enough(world: World, request: RequestData, index: int) -> bool:
    amounts = world.amounts_of(request, index)
    if amounts is None:
        return False
    capacity = world.devices[index].device.capacity
    return all(amount <= capacity[name].value for name, amount in amounts.items())
