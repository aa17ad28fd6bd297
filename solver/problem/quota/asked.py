"""How much of each resource a gang asks for, and how much it was given.

Devices count by the resource that their DeviceClass is mapped to: each is 1, or the
amount of a capacity that is mapped. Of alternatives the most counts until one is
chosen. Pure.

Source: Kueue's `deviceClassMappings`; KEP-4381 and KEP-5075 of Kubernetes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from contracts.allocation import MAX_DEVICES
from contracts.ids import DeviceClassName, FullyQualifiedName
from contracts.kueue import ClusterQueue, DeviceClassMapping
from contracts.messages import MemberAllocated, QuotaHeld
from contracts.pods.node_resources import PODS
from contracts.quantity import NANO, Quantity
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    QueuePart,
    SubrequestPart,
)
from solver.problem.sharing import count_claims
from solver.snapshot.parts import ClassPart

Asked = dict[str, int]
"""By resource: cpu in thousandths, else whole units."""


def make_queue_part(
    name: str,
    queue: ClusterQueue,
    gang: GangPart,
    mappings: Iterable[DeviceClassMapping],
    class_of: Callable[[DeviceClassName], ClassPart | None],
) -> tuple[QueuePart | None, str]:
    """Say how a gang counts for a queue; or None, and why that cannot be said."""
    covered = {r for g in queue.spec.resource_groups for r in g.covered_resources}
    by_class = {c: m for m in mappings for c in m.device_class_names}
    resources: dict[DeviceClassName, str] = {}
    capacities: dict[DeviceClassName, FullyQualifiedName] = {}
    for device_class in sorted({asked.device_class for asked in _list_requests(gang)}):
        mapping, known = by_class.get(device_class), class_of(device_class)
        if mapping is not None:
            resource = mapping.name
            for source in mapping.sources:
                if source.capacity is None:
                    field = f"deviceClassMappings[{resource}].sources"
                    return None, f"{field}: only a capacity is counted, or devices"
                capacities[device_class] = FullyQualifiedName(source.capacity.name)
        elif known is not None and known.extended_resource_name in covered:
            resource = known.extended_resource_name
        else:
            resource = device_class
        if resource not in covered:
            return None, f"it has no quota of DeviceClass {device_class}"
        resources[device_class] = resource
    for asked in _list_requests(gang):
        capacity = capacities.get(asked.device_class)
        if capacity is not None and _find_capacity(asked, capacity) is None:
            return None, f"a request of {asked.device_class} names no {capacity}"
    for member in gang.members:
        for resource in sorted(member.resources):
            if resource != PODS and resource not in covered:
                return None, f"it has no quota of {resource}"
    part = QueuePart(
        name=name,
        classes=resources,
        capacities=capacities,
        counts_pods=PODS in covered,
    )
    return part, ""


def _list_requests(gang: GangPart) -> list[SubrequestPart]:
    """List what is asked for, all alternatives, but for what only looks on."""
    return [
        asked
        for _, claim in count_claims(gang.members)
        for request in claim.requests
        for asked in request.alternatives
        if not asked.admin_access
    ]


# --- asked for -----------------------------------------------------------------------


def count_asked(gang: GangPart, queue: QueuePart) -> Asked:
    """Count what a gang may get at most."""
    total = Counter[str]()
    for member in gang.members:
        _add_pods(total, member, member.count, queue)
    for pods, claim in count_claims(gang.members):
        for resource, amount in _most_of_claim(claim, queue).items():
            total[resource] += pods * amount
    return {resource: amount for resource, amount in total.items() if amount}


def _add_pods(
    total: Counter[str], member: MemberPart, pods: int, queue: QueuePart
) -> None:
    for resource, amount in member.resources.items():
        if resource != PODS:
            total[resource] += pods * amount
    if queue.counts_pods:
        total[PODS] += pods * member.resources.get(PODS, 1)


def _most_of_claim(claim: ClaimPart, queue: QueuePart) -> Counter[str]:
    total = Counter[str]()
    for request in claim.requests:
        # Of alternatives the most, resource by resource.
        most = Counter[str]()
        for asked in request.alternatives:
            if not asked.admin_access:
                most |= Counter(
                    {queue.classes[asked.device_class]: _amount_of(asked, queue)}
                )
        total += most
    # However much it asks for, a claim holds no more devices than it can.
    by_capacity = {queue.classes[each] for each in queue.capacities}
    for resource in total.keys() - by_capacity:
        total[resource] = min(total[resource], MAX_DEVICES)
    return total


def _amount_of(asked: SubrequestPart, queue: QueuePart) -> int:
    count = MAX_DEVICES if asked.all_devices else asked.count
    return count * _amount_of_one(asked, queue)


def _amount_of_one(asked: SubrequestPart, queue: QueuePart) -> int:
    """Return what one device counts as: 1, or what is asked for of its capacity."""
    capacity = queue.capacities.get(asked.device_class)
    amount = None if capacity is None else _find_capacity(asked, capacity)
    return 1 if amount is None else max(-(-amount.nano // NANO), 0)


def _find_capacity(asked: SubrequestPart, capacity: str) -> Quantity | None:
    short = capacity.partition("/")[2]
    return asked.capacity.get(capacity) or asked.capacity.get(short)


# --- given ---------------------------------------------------------------------------


def count_held(gang: GangPart, members: Iterable[MemberAllocated]) -> QuotaHeld | None:
    """Count what a gang holds with these pods; None: no queue counts it."""
    queue, placed = gang.queue, tuple(members)
    if queue is None or not placed:
        return None
    parts = {member.name: member for member in gang.members}
    total, seen = Counter[str](), set[str]()
    for pod in placed:
        part = parts[pod.member]
        _add_pods(total, part, 1, queue)
        for claim, said in zip(part.claims, pod.claims, strict=True):
            if claim.claim_name and claim.claim_name in seen:
                continue
            seen.add(claim.claim_name)
            asked = dict(_list_alternatives(claim))
            for result in said.allocation.devices.results:
                if result.admin_access:
                    continue
                chosen = asked[result.request]
                resource = queue.classes[chosen.device_class]
                total[resource] += _amount_of_one(chosen, queue)
    amounts = {r: total[r] for r in sorted(total) if total[r] and r in queue.flavors}
    flavors = {resource: queue.flavors[resource] for resource in amounts}
    return QuotaHeld(cluster_queue=queue.name, flavors=flavors, amounts=amounts)


def add_held(before: QuotaHeld | None, more: QuotaHeld | None) -> QuotaHeld | None:
    """Add what the further pods of a gang hold to what it holds already."""
    if before is None or more is None:
        return before or more
    total = Counter(before.amounts) + Counter(more.amounts)
    return QuotaHeld(
        cluster_queue=before.cluster_queue,
        flavors={**more.flavors, **before.flavors},
        amounts={resource: total[resource] for resource in sorted(total)},
    )


def _list_alternatives(claim: ClaimPart) -> Iterator[tuple[str, SubrequestPart]]:
    for request in claim.requests:
        for index, asked in enumerate(request.alternatives):
            yield request.result_name(index), asked
