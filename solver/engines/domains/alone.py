"""One gang whose parts are in domains, placed where the least room is lost.

Where no node takes two of its pods, what they lose adds up, so the best domain and the
best nodes in it are found by looking at each once, and nothing is better. Else its
parts go to the tightest domains that have room.
"""

from __future__ import annotations

from msgspec import structs

from solver.engines.choose import PATTERN, choose_engine
from solver.engines.domains.parts import DomainPart, find_parts
from solver.engines.domains.search import DomainSearch
from solver.engines.domains.table import DomainTable
from solver.engines.greedy.states import DeviceStates
from solver.errors import PatternLimitError
from solver.kinds.counting import is_one_to_a_node
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import without_spanning_rules
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.problem import Problem


def place_alone(
    problem: Problem, demand: Demand, kinds: tuple[NodeKind, ...]
) -> tuple[GangPlacement, ...]:
    """Place the only gang of a batch; nothing: it is not found, or not of this sort.

    With its first choices where that can be. `demand`: beside what the Problem expects.
    """
    if len(demand.gangs) != 1 or demand.is_elastic:
        return ()
    parts = find_parts(demand).get(0)
    bare = Demand(map(without_spanning_rules, demand.gangs), expected=problem.expected)
    # Rules that span pods leave no trace in what is asked of nodes but the labels.
    query = structs.replace(bare.query, labels=demand.query.labels)
    if parts is None or query != demand.query:
        return ()
    if choose_engine(bare, kinds).engine != PATTERN:
        return ()
    try:
        table = DomainTable(bare, kinds, DeviceStates(bare))
        search = DomainSearch(bare, table, [parts], problem.parameters.seed)
        domain = _find_cheapest(bare, kinds, table, parts)
        return search.run(0.0) if domain is None else search.place_in(domain)
    except PatternLimitError:
        return ()


def _find_cheapest(
    bare: Demand,
    kinds: tuple[NodeKind, ...],
    table: DomainTable,
    parts: tuple[DomainPart, ...],
) -> int | None:
    """Find the domain where the gang loses least; None: that does not add up."""
    if len(parts) != 1 or not is_one_to_a_node(bare, kinds):
        return None
    return table.find_cheapest(parts[0].labels, bare.pods[0])
