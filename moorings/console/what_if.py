"""What-if: a recorded Problem with changes, to be solved again.

Changes what is asked or what is there, and nothing else: the verdicts of selectors are
those that were recorded, so added nodes are like one that was judged. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct, structs

from contracts.codec import Codec
from contracts.ids import DeviceName, NodeName, PoolName
from contracts.names import UNHEALTHY
from moorings.errors import BadInputError
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.snapshot.pages import PAGES, Page, Pages, page_number_of
from solver.snapshot.parts import NodePart, PartValue, PoolPart, UsePart, pool_key

MOST_NODES = 256
"""Nodes that may be added."""
HOSTNAME = "kubernetes.io/hostname"
AddedNodes = Annotated[int, Meta(ge=0, le=MOST_NODES)]
PodCount = Annotated[int, Meta(ge=1, le=5000)]


class WhatIf(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """The changes of a what-if; without any it is a replay."""

    leave_out: tuple[str, ...] = ()
    """Gangs of the batch, by uid."""
    pods: dict[str, PodCount] = {}
    """Pods of a member, by `uid/member`."""
    priorities: dict[str, int] = {}
    """By uid."""
    end: tuple[str, ...] = ()
    """Gangs that hold devices, by `namespace/name`: what they hold is free."""
    heal: bool = False
    """True: all devices are healthy and all nodes ready."""
    add_nodes: AddedNodes = 0
    like: str = ""
    """The node that added ones are like, with nothing of their devices held."""


WHAT_IF: Codec[WhatIf] = Codec(WhatIf, "what-if")


class Freed(Struct, frozen=True, kw_only=True):
    """What is freed when some gangs end."""

    devices: Mapping[str, frozenset[DeviceName]] = {}
    """By pool key; held whole."""
    amounts: Mapping[NodeName, Mapping[str, int]] = {}
    """Resources of nodes that their pods use."""


def change_problem(problem: Problem, what_if: WhatIf, freed: Freed) -> Problem:
    """Ask a recorded question in another way.

    Raises:
        BadInputError: it names a gang, a member or a node that is not in the Problem.
    """
    pages = _sort_pages(problem.pages)
    if what_if.add_nodes:
        pages = _add_nodes(pages, NodeName(what_if.like), what_if.add_nodes)
    for value in list(pages.values()):
        pages = _change_part(pages, value, what_if, freed)
    gangs = _change_gangs(problem.gangs, what_if)
    return problem.with_pages(tuple(pages)).with_gangs(gangs)


def _sort_pages(pages: Iterable[Page]) -> Pages:
    """Put recorded pages, which are not numbered, where their nodes belong."""
    by_number = {page_number_of(next(iter(page.nodes))): page for page in pages}
    return Pages(tuple(by_number.get(number) or Page({}) for number in range(PAGES)))


def _change_part(
    pages: Pages, value: PartValue, what_if: WhatIf, freed: Freed
) -> Pages:
    if isinstance(value, UsePart):
        gone = freed.devices.get(pool_key(value.driver, value.pool), frozenset())
        taints = value.taints
        if what_if.heal:
            taints = tuple((d, taint) for d, taint in taints if taint.key != UNHEALTHY)
        taken = tuple(device for device in value.taken if device not in gone)
        return pages.with_value(structs.replace(value, taken=taken, taints=taints))
    if isinstance(value, NodePart):
        return pages.with_value(_change_node(pages, value, what_if, freed))
    return pages


def _change_node(
    pages: Pages, node: NodePart, what_if: WhatIf, freed: Freed
) -> NodePart:
    free = node.free
    # Amounts come back only where devices do: else the record is older than the gang.
    uses = (value for value in pages.of(node.name) if isinstance(value, UsePart))
    holds = any(freed.devices.get(pool_key(use.driver, use.pool)) for use in uses)
    if free is not None and holds:
        amounts = freed.amounts.get(node.name, {})
        free = {name: left + amounts.get(name, 0) for name, left in free.items()}
    unavailable = "" if what_if.heal else node.unavailable
    return structs.replace(node, free=free, unavailable=unavailable)


def _add_nodes(pages: Pages, like: NodeName, count: int) -> Pages:
    models = list(pages.of(like)) if like else []
    if not any(isinstance(value, NodePart) for value in models):
        raise BadInputError("like", f"no node {like!r} in this solve")
    for number in range(1, count + 1):
        name = NodeName(f"what-if-{number}-like-{like}")
        for value in models:
            if isinstance(value, NodePart):
                pages = pages.with_value(_copy_node(value, name))
            elif isinstance(value, PoolPart) and not value.contested:
                pages = pages.with_value(_copy_pool(value, name))
    return pages


def _copy_node(node: NodePart, name: NodeName) -> NodePart:
    labels = dict(node.labels)
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    return structs.replace(node, name=name, labels=labels, unavailable="")


def _copy_pool(pool: PoolPart, node: NodeName) -> PoolPart:
    slices = tuple(
        structs.replace(part, name=f"{node}-{part.name}", node_name=node)
        for part in pool.slices
    )
    name = PoolName(f"{node}-{pool.pool}")
    return structs.replace(pool, pool=name, node=node, slices=slices)


def _change_gangs(gangs: tuple[GangPart, ...], what_if: WhatIf) -> tuple[GangPart, ...]:
    """Change the gangs of a batch; they stay in the order of their urgency."""
    uids = {str(gang.uid) for gang in gangs}
    members = {f"{gang.uid}/{m.name}" for gang in gangs for m in gang.members}
    _check_known("leaveOut", what_if.leave_out, uids)
    _check_known("priorities", what_if.priorities, uids)
    _check_known("pods", what_if.pods, members)
    changed = [
        _change_gang(g, what_if) for g in gangs if g.uid not in what_if.leave_out
    ]
    return tuple(sorted(changed, key=lambda gang: -gang.priority))


def _check_known(field: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInputError(field, f"no {name!r} in this solve")


def _change_gang(gang: GangPart, what_if: WhatIf) -> GangPart:
    members = tuple(_change_member(gang, m, what_if.pods) for m in gang.members)
    priority = what_if.priorities.get(str(gang.uid), gang.priority)
    return structs.replace(gang, members=members, priority=priority)


def _change_member(
    gang: GangPart, member: MemberPart, pods: Mapping[str, int]
) -> MemberPart:
    count = pods.get(f"{gang.uid}/{member.name}", member.count)
    return structs.replace(member, count=count)
