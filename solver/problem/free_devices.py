"""Which gangs lack devices whatever else counts: free devices, counted node by node.

Neither selectors nor rules are looked at, so who lacks devices here has no place, and
who lacks none may have none either. Each node is counted once until it changes. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from contracts.ids import NodeName
from solver.cache import Slot
from solver.problem.gangs import GangPart, MemberPart, RequestPart, SubrequestPart
from solver.snapshot.pages import NodeParts, Page
from solver.snapshot.parts import PoolPart, UsePart, use_key_of

PLENTY = 1 << 40
"""Stands for the devices of a node where some may be shared."""
_OF_NODE: Slot[int] = Slot()
_OF_PAGE: Slot[Counter[int]] = Slot()


FreeByNode = Mapping[NodeName, int]
"""The devices that are free on each node, at most."""


class FreeDevices(Struct, frozen=True):
    """How many devices are free, at most."""

    nodes: Mapping[int, int]
    """How many nodes have so many."""
    anywhere: bool = False
    """True if there are devices that no node owns: nobody lacks any."""

    @classmethod
    def of(cls, free: FreeByNode) -> FreeDevices:
        """Sum up the devices of nodes."""
        return cls(Counter(free.values()))

    def lacks(self, gang: GangPart) -> bool:
        """True if a gang has no place, as there are too few devices."""
        return not self.anywhere and any(
            member.least and self._count_pods(member) < member.least
            for member in gang.members
        )

    def _count_pods(self, member: MemberPart) -> int:
        """Count the pods of a member for which there are devices, at most."""
        each = _count_least(member)
        if not each:
            return member.least
        return sum(free // each * nodes for free, nodes in self.nodes.items())


def count_free(pages: Iterable[Page]) -> FreeDevices:
    """Count the free devices of a cluster."""
    total = Counter[int]()
    anywhere = False
    for page in pages:
        counts = _OF_PAGE.get(page.memory)
        if counts is None:
            counts = _OF_PAGE.keep(page.memory, _count_page(page))
        total.update(counts)
        anywhere = anywhere or _has_pools(page.nodes.get(""))
    return FreeDevices(total, anywhere)


def list_free(pages: Iterable[Page]) -> dict[NodeName, int] | None:
    """List the free devices of each node; None: some are no node's."""
    free: dict[NodeName, int] = {}
    for page in pages:
        if _has_pools(page.nodes.get("")):
            return None
        for owner, node in page.nodes.items():
            if owner:
                free[NodeName(owner)] = _count_node(node)
    return free


def leaves_room(
    begins: GangPart, now: FreeByNode, starts: GangPart, then: FreeByNode
) -> bool:
    """False if a gang that begins now leaves another too few devices, wherever it is.

    `now` and `then`: the devices that are free when each begins, and the other is not
    there.
    """
    for member in starts.members:
        each = _count_least(member)
        spare = (
            sum(free // each for free in then.values()) - member.least if each else 1
        )
        if spare < 0:
            return False
        if spare == 0 and not _has_scraps(begins, now, each, then):
            return False
    return True


def _has_scraps(gang: GangPart, now: FreeByNode, each: int, then: FreeByNode) -> bool:
    """True if a gang may do with what is left over of nodes by pods of some size."""
    for member in gang.members:
        own = _count_least(member)
        if own and member.least > sum(
            min(free % each, now.get(node, 0)) // own for node, free in then.items()
        ):
            return False
    return True


def _has_pools(cluster: NodeParts | None) -> bool:
    parts = () if cluster is None else cluster.parts.values()
    return any(isinstance(part.value, PoolPart) for part in parts)


def _count_page(page: Page) -> Counter[int]:
    return Counter(_count_node(node) for owner, node in page.nodes.items() if owner)


def _count_node(node: NodeParts) -> int:
    known = _OF_NODE.get(node.memory)
    if known is not None:
        return known
    free = 0
    for key, part in node.parts.items():
        pool = part.value
        if isinstance(pool, PoolPart):
            devices = pool.devices
            if any(device.allow_multiple_allocations for device in devices):
                return _OF_NODE.keep(node.memory, PLENTY)
            used = node.parts.get(use_key_of(key))
            taken = used.value.taken if used and isinstance(used.value, UsePart) else ()
            names = {device.name for device in devices}
            free += len(devices) - len(names.intersection(taken))
    return _OF_NODE.keep(node.memory, free)


def _count_least(member: MemberPart) -> int:
    """Count the devices that each pod takes for itself at least."""
    return sum(
        _count_least_of(request)
        for claim in member.claims
        if not claim.claim_name
        for request in claim.requests
    )


def _count_least_of(request: RequestPart) -> int:
    return min(map(_count_taken, request.alternatives), default=0)


def _count_taken(asked: SubrequestPart) -> int:
    """Count the devices of an alternative; of all devices there may be none."""
    return 0 if asked.all_devices or asked.admin_access else asked.count
