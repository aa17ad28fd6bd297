"""A Problem as it would be: with more nodes, healthy devices, gangs that ended. Pure.

The verdicts of selectors are those that were recorded, so added nodes are like one that
was judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import structs

from contracts.device import DeviceTaint
from contracts.ids import DeviceID, NodeName, PoolName
from contracts.names import UNHEALTHY
from contracts.quantity import Quantity
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.snapshot.node_state import add_amounts
from solver.snapshot.pages import Page
from solver.snapshot.parts import NodePart, PartValue, PoolPart, UsePart
from solver.timeline.holdings import Holding, sort_pages

MOST_NODES = 256
"""Nodes that may be added."""
HOSTNAME = "kubernetes.io/hostname"


def with_nodes(
    problem: Problem, like: NodeName, count: int, used: Mapping[str, int]
) -> Problem:
    """Add nodes like one, with nothing of them held; none where there is no such node.

    `used`: what gangs use of that node besides devices, which its copies have free.
    """
    pages = sort_pages(problem.pages)
    models = list(pages.of(like)) if like else []
    if not any(isinstance(value, NodePart) for value in models):
        return problem
    added: list[PartValue] = []
    for number in range(1, count + 1):
        name = NodeName(f"what-if-{number}-like-{like}")
        for value in models:
            if isinstance(value, NodePart):
                added.append(_copy_node(value, name, used))
            elif isinstance(value, PoolPart) and not value.contested:
                added.append(_copy_pool(value, name))
    return problem.with_pages(tuple(pages.with_values(added)))


def _copy_node(node: NodePart, name: NodeName, used: Mapping[str, int]) -> NodePart:
    labels, free = dict(node.labels), node.free
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    if free is not None:
        free = {each: left + used.get(each, 0) for each, left in free.items()}
    return structs.replace(node, name=name, labels=labels, free=free, unavailable="")


def _copy_pool(pool: PoolPart, node: NodeName) -> PoolPart:
    slices = tuple(
        structs.replace(part, name=f"{node}-{part.name}", node_name=node)
        for part in pool.slices
    )
    name = PoolName(f"{node}-{pool.pool}")
    return structs.replace(pool, pool=name, node=node, slices=slices)


def without_nodes(problem: Problem, nodes: Collection[NodeName]) -> Problem:
    """Let nodes be of no use; what is held there stays held."""
    pages = sort_pages(problem.pages)
    changed = [
        structs.replace(value, unavailable="gone")
        for value in pages.values()
        if isinstance(value, NodePart) and value.name in nodes
    ]
    return problem.with_pages(tuple(pages.with_values(changed)))


def with_taint(
    problem: Problem, devices: Collection[DeviceID], taint: DeviceTaint
) -> Problem:
    """Let devices have one more taint."""
    pages = sort_pages(problem.pages)
    changed: list[PartValue] = []
    for value in pages.values():
        if isinstance(value, UsePart):
            own = sorted(
                each.device
                for each in devices
                if (each.driver, each.pool) == (value.driver, value.pool)
            )
            if own:
                taints = [*value.taints, *((name, taint) for name in own)]
                taints.sort(key=lambda entry: entry[0])
                changed.append(structs.replace(value, taints=tuple(taints)))
    return problem.with_pages(tuple(pages.with_values(changed)))


def with_ended(problem: Problem, holdings: Iterable[Holding]) -> Problem:
    """Free what gangs hold for themselves.

    Amounts come back only on nodes where devices do: else the record is older than the
    gang.
    """
    freed: dict[DeviceID, Consumed | None] = {}
    amounts: dict[NodeName, dict[str, int]] = {}
    for holding in holdings:
        freed |= dict.fromkeys(holding.devices)
        for device, of_share in holding.shares.items():
            shares = freed.setdefault(device, {})
            if shares is not None:
                add_amounts(shares, of_share)
        for node, of_node in holding.amounts.items():
            add_amounts(amounts.setdefault(node, {}), of_node)
    if not freed:
        return problem
    pages = sort_pages(problem.pages)
    changed: list[PartValue] = []
    for node in _list_nodes(pages, freed):
        changed += _free_node(list(pages.of(node)), freed, amounts.get(node, {}))
    return problem.with_pages(tuple(pages.with_values(changed)))


Consumed = dict[str, int]
"""1e-9 units by capacity."""


def _list_nodes(pages: Iterable[Page], freed: Iterable[DeviceID]) -> list[NodeName]:
    """List the nodes, and "" for the cluster, with pools of which devices are freed."""
    pools = {(device.driver, device.pool) for device in freed}
    uses = (part.value for page in pages for part in page.parts())
    return sorted(
        {
            use.node
            for use in uses
            if isinstance(use, UsePart) and (use.driver, use.pool) in pools
        }
    )


def _free_node(
    values: list[PartValue],
    freed: Mapping[DeviceID, Consumed | None],
    amounts: Mapping[str, int],
) -> list[PartValue]:
    uses = [value for value in values if isinstance(value, UsePart)]
    after = [_free_devices(use, freed) for use in uses]
    changed: list[PartValue] = [*after]
    for value in values if after != uses else ():
        if isinstance(value, NodePart) and value.free is not None:
            free = {
                each: left + amounts.get(each, 0) for each, left in value.free.items()
            }
            changed.append(structs.replace(value, free=free))
    return changed


def _free_devices(use: UsePart, freed: Mapping[DeviceID, Consumed | None]) -> UsePart:
    taken = tuple(
        device
        for device in use.taken
        if freed.get(DeviceID(use.driver, use.pool, device), {}) is not None
    )
    shared = []
    for share in use.shared:
        gone = freed.get(DeviceID(use.driver, use.pool, share.device)) or {}
        left = {
            name: amount.nano - gone.get(name, 0) for name, amount in share.consumed
        }
        # Who consumed all that was consumed was the last to share it.
        if not gone or any(amount > 0 for amount in left.values()):
            amounts = ((n, Quantity.of_nano(max(a, 0))) for n, a in left.items())
            consumed = tuple(amounts) if gone else share.consumed
            shared.append(structs.replace(share, consumed=consumed))
    return structs.replace(use, taken=taken, shared=tuple(shared))


def healed(problem: Problem) -> Problem:
    """Let all devices be healthy, and all nodes ready."""
    pages = sort_pages(problem.pages)
    changed: list[PartValue] = []
    for value in pages.values():
        if isinstance(value, UsePart):
            taints = tuple(
                (d, each) for d, each in value.taints if each.key != UNHEALTHY
            )
            changed.append(structs.replace(value, taints=taints))
        elif isinstance(value, NodePart):
            changed.append(structs.replace(value, unavailable=""))
    return problem.with_pages(tuple(pages.with_values(changed)))


def with_gang(problem: Problem, changed: GangPart) -> Problem:
    """Ask for a gang in another way."""
    gangs = (changed if gang.key == changed.key else gang for gang in problem.gangs)
    return problem.with_gangs(tuple(gangs))


def with_pods(gang: GangPart, pods: Mapping[str, int]) -> GangPart:
    """Ask for another number of pods of some members, by name."""
    members = (_with_count(m, pods.get(m.name, m.count)) for m in gang.members)
    return structs.replace(gang, members=tuple(members))


def _with_count(member: MemberPart, count: int) -> MemberPart:
    least = None if member.least >= count else member.min_count
    if count == member.count:
        return member
    return structs.replace(member, count=count, min_count=least)
