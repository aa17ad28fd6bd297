"""Gangs with rules that span pods, asked for as packing knows them.

More narrowly, so that what is found holds for them: what is preferred as if it were
required, devices that have one value. Or as if they had fewer rules, for a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from contracts.gang_rules import GangTopology
from solver.engines.blocks import find_without_tree
from solver.engines.values import (
    Narrowed,
    find_narrowable,
    narrow_to_values,
    without_values,
)
from solver.kinds.demand import Demand
from solver.kinds.topology import PREFERRED, without_spanning_rules
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem

REQUIRED = "Required"


def find_tightened(demand: Demand) -> frozenset[int]:
    """Find the gangs that are trees of blocks only if they are asked for narrowly."""
    gangs = sorted(find_without_tree(demand))
    asked = Demand(_require(demand.gangs[gang]) for gang in gangs)
    narrowed = find_narrowable(asked)
    bare = Demand(
        without_values(gang) if number in narrowed else gang
        for number, gang in enumerate(asked.gangs)
    )
    unknown = find_without_tree(bare)
    return frozenset(gang for n, gang in enumerate(gangs) if n not in unknown)


def tighten(problem: Problem, gangs: Sequence[GangPart]) -> Narrowed:
    """Ask for gangs narrowly, as far as there is room for values on the cluster."""
    asked = tuple(map(_require, gangs))
    narrowed = narrow_to_values(problem, asked)
    able = find_narrowable(Demand(asked))
    found = {number: gang for number, gang in enumerate(asked) if number not in able}
    return Narrowed({**found, **narrowed.gangs}, narrowed.effort)


def loosen(gang: GangPart, *, keeps_labels: bool) -> GangPart:
    """Ask for a gang with required domains of labels alone, or without any."""
    if not keeps_labels or gang.standing or gang.separated:
        return without_spanning_rules(gang)
    topology = tuple(_list_required_labels(gang))
    return structs.replace(without_values(gang), topology=topology)


def _list_required_labels(gang: GangPart) -> Iterable[GangTopology]:
    for rule in gang.topology:
        is_about_domain = rule.attribute is None and rule.max_per_domain is None
        if is_about_domain and rule.mode != PREFERRED and not rule.is_even:
            yield rule


def _require(gang: GangPart) -> GangPart:
    """Ask for what a gang prefers as if it were required: one domain, of even ones."""
    topology = []
    for rule in gang.topology:
        if rule.max_per_domain is not None:
            topology.append(rule)
        elif rule.is_even:
            topology.append(structs.replace(rule, group_size=None))
        else:
            topology.append(structs.replace(rule, mode=REQUIRED))
    return structs.replace(gang, topology=tuple(topology))
