"""A Problem as it is once some of its gangs have what they were given.

What they hold becomes a fact of the cluster, so that others may be decided after them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import NodeName, PoolID
from contracts.messages import MemberAllocated
from contracts.pods.node_resources import PODS
from contracts.quantity import Quantity
from solver.devices.gather import Cluster
from solver.placement import GangPlacement
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.results import Results
from solver.snapshot.pages import Page
from solver.snapshot.parts import (
    NodePart,
    Part,
    PartValue,
    ShareUse,
    UsePart,
    node_key,
    use_key,
)


def take(problem: Problem, placed: Iterable[tuple[GangPart, GangPlacement]]) -> Problem:
    """Count what gangs were given as held by others; the gangs stay in the Problem."""
    cluster = Cluster(problem.pages, problem.parameters.features)
    results = Results(problem, cluster, narrow=True)
    pages = _Pages(problem.pages)
    for gang, placement in placed:
        needs = {member.name: {PODS: 1, **member.resources} for member in gang.members}
        for pod in results.of_gang(gang, placement):
            pages.take_devices(cluster, pod)
            pages.take_of_node(pod.node, needs[pod.member])
    return problem.with_pages(pages.listed())


def with_result(use: UsePart, result: DeviceRequestAllocationResult) -> UsePart:
    """Add one device, or one share of it, to what is used of a pool."""
    if result.share_id is None:
        return structs.replace(use, taken=(*use.taken, result.device))
    consumed = {name: amount.nano for name, amount in result.consumed_capacity.items()}
    for share in use.shared:
        if share.device == result.device:
            for name, amount in share.consumed:
                consumed[name] = consumed.get(name, 0) + amount.nano
    merged = ShareUse(
        device=result.device,
        consumed=tuple((n, Quantity.of_nano(v)) for n, v in sorted(consumed.items())),
    )
    others = tuple(share for share in use.shared if share.device != result.device)
    return structs.replace(use, shared=(*others, merged))


class _Pages:
    """The pages of a Problem while parts of them are replaced."""

    def __init__(self, pages: tuple[Page, ...]) -> None:
        self._pages = list(pages)
        self._number_by_owner = {
            owner: number for number, page in enumerate(pages) for owner in page.nodes
        }

    def listed(self) -> tuple[Page, ...]:
        """Return the pages as they are now."""
        return tuple(self._pages)

    def take_devices(self, cluster: Cluster, pod: MemberAllocated) -> None:
        """Count what a pod got as taken; admin access takes nothing."""
        owners = {
            PoolID(view.driver, view.pool): NodeName(view.part.owner)
            for view in cluster.nodes[pod.node].pools
        }
        for claim in pod.claims:
            for result in claim.allocation.devices.results:
                if result.admin_access:
                    continue
                owner = owners[PoolID(result.driver, result.pool)]
                use = self._get(owner, use_key(result.driver, result.pool))
                if not isinstance(use, UsePart):
                    use = UsePart(driver=result.driver, pool=result.pool, node=owner)
                self._put(with_result(use, result))

    def take_of_node(self, name: NodeName, needs: dict[str, int]) -> None:
        """Count what a pod needs of its node."""
        node = self._get(name, node_key(name))
        if isinstance(node, NodePart) and node.free is not None:
            free = {
                resource: amount - needs.get(resource, 0)
                for resource, amount in node.free.items()
            }
            self._put(structs.replace(node, free=free))

    def _get(self, owner: str, key: str) -> PartValue | None:
        part = self._pages[self._number_by_owner[owner]].get(owner, key)
        return None if part is None else part.value

    def _put(self, value: PartValue) -> None:
        part = Part(value)
        number = self._number_by_owner[part.owner]
        self._pages[number] = self._pages[number].with_part(part)
