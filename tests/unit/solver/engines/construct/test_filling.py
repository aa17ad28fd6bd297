"""One case a rule: where gangs are put that are taken in one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import Struct

from contracts.device import ResourcePool
from contracts.gang import Gang
from contracts.workload import Pod
from solver.engines.construct.search import construct
from solver.kinds.affinity.resolve import resolve_affinity
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders import (
    DRIVER,
    constraint,
    counter_set,
    device,
    devices,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.neighbours import ZONE, apart, caring, near, running, spread, term
from tests.builders.problems import observe_core, problem_of, snapshot_of

UID = "00000000-0000-4000-8000-{:012}"
RAIL = f"{DRIVER}/rail"
ONE, TWO = member_claim(request()), member_claim(request(count=2))


class Case(Struct, frozen=True, kw_only=True):
    """Gangs on nodes `n0`, `n1`, ...; the nodes of the pods of each gang."""

    name: str
    gangs: tuple[Gang, ...]
    placed: tuple[str, ...]
    """The numbers of the nodes, pod by pod; empty: the gang is not in."""
    zones: str = "ab"
    """Of each node."""
    sizes: tuple[int, ...] = (2, 2)
    """Devices of each node; not used where `pools` says them."""
    pools: tuple[ResourcePool, ...] = ()
    running: tuple[Pod, ...] = ()


def of(number: int, *members: object, **rules: object) -> Gang:
    """Make a gang by number."""
    return gang(*members, name=f"g{number}", uid=UID.format(number), **rules)  # type: ignore[arg-type]


def railed(*rails: int, name: str) -> ResourcePool:
    """Make a node with a device on each of these rails."""
    made = (
        device(f"d{number}", attributes={"rail": rail})
        for number, rail in enumerate(rails)
    )
    return pool(*made, name=name)


def split(eighths: int, *draws: int, name: str) -> ResourcePool:
    """Make a node with a card of which devices draw."""
    parts = (
        device(f"d{number}", consumes={"card": {"eighths": draw}})
        for number, draw in enumerate(draws)
    )
    return pool(*parts, name=name, counters=[counter_set("card", eighths=eighths)])


def sharing(gbps: int, name: str) -> ResourcePool:
    """Make a node with one device that may be shared."""
    shared = device("vf", capacity={"gbps": gbps}, allow_multiple_allocations=True)
    return pool(shared, name=name)


CASES = (
    Case(
        name="a gang is in as a whole or not at all",
        gangs=(of(1, member(ONE, count=5)), of(2, member(ONE, count=4))),
        placed=("", "0011"),
    ),
    Case(
        name="urgent gangs come first",
        gangs=(
            of(1, member(ONE, count=3)),
            of(2, member(ONE, count=4), priority=1),
        ),
        placed=("", "0011"),
    ),
    Case(
        name="of two that exclude each other the one of more weight",
        gangs=(of(1, member(ONE, count=3)), of(2, member(ONE, count=4))),
        placed=("", "0011"),
    ),
    Case(
        name="the node with least left comes first",
        gangs=(of(1, member(ONE)),),
        placed=("1",),
        sizes=(4, 1),
    ),
    Case(
        name="apart: one pod to a zone",
        gangs=(caring(2, affinity=apart(term(ZONE))), caring(1, number=2)),
        placed=("01", ""),
    ),
    Case(
        name="near: where the pod runs",
        gangs=(caring(2, app="y", affinity=near(term(ZONE))),),
        placed=("11",),
        running=(running("n1"),),
    ),
    Case(
        name="near: a series is in one zone that has room for all of it",
        gangs=(caring(3, affinity=near(term(ZONE))),),
        placed=("112",),
        zones="abb",
        sizes=(2, 2, 2),
    ),
    Case(
        name="near: what others need near comes before them",
        gangs=(
            caring(1, app="y", affinity=near(term(ZONE))),
            caring(1, number=2),
        ),
        placed=("0", "0"),
    ),
    Case(
        name="spread: no zone has two more than another",
        gangs=(caring(3, topology_spread_constraints=(spread(),)),),
        placed=("011",),
        zones="aba",
        sizes=(1, 3, 3),
    ),
    Case(
        name="spread: not where it cannot be even",
        gangs=(caring(4, topology_spread_constraints=(spread(),)),),
        placed=("",),
        sizes=(3, 1),
    ),
    Case(
        name="a required domain has room for all pods",
        gangs=(of(1, member(ONE, count=3), topology=(topology_rule(ZONE),)),),
        placed=("112",),
        zones="abb",
        sizes=(2, 2, 2),
    ),
    Case(
        name="a preferred domain, and more where it is too small",
        gangs=(
            of(
                1,
                member(ONE, count=2),
                topology=(topology_rule(ZONE, mode="Preferred"),),
            ),
            of(
                2,
                member(ONE, count=3),
                topology=(topology_rule(ZONE, mode="Preferred"),),
            ),
        ),
        placed=("00", "112"),
        zones="abc",
        sizes=(2, 2, 2),
    ),
    Case(
        name="even parts, in few domains that are large enough",
        gangs=(
            of(
                1,
                member(ONE, count=4),
                topology=(topology_rule(ZONE, group_size="Even"),),
            ),
        ),
        placed=("0011",),
        zones="aabc",
        sizes=(2, 2, 1, 3),
    ),
    Case(
        name="even parts of half a gang",
        gangs=(
            of(
                1,
                member(ONE, count=4),
                topology=(topology_rule(ZONE, group_size="Even"),),
            ),
        ),
        placed=("0022",),
        zones="abc",
        sizes=(3, 1, 3),
    ),
    Case(
        name="no parts of three and one",
        gangs=(
            of(
                1,
                member(ONE, count=4),
                topology=(topology_rule(ZONE, group_size="Even"),),
            ),
        ),
        placed=("",),
        zones="ab",
        sizes=(3, 1),
    ),
    Case(
        name="groups of two are each in a zone",
        gangs=(
            of(
                1,
                member(ONE, count=4),
                topology=(topology_rule(ZONE, group_size=2),),
            ),
        ),
        placed=("0011",),
        sizes=(3, 3),
    ),
    Case(
        name="no more than one pod to a zone",
        gangs=(
            of(
                1,
                member(ONE, count=2),
                topology=(topology_rule(ZONE, max_per_domain=1),),
            ),
        ),
        placed=("02",),
        zones="aab",
        sizes=(2, 2, 2),
    ),
    Case(
        name="all devices of a gang on one rail",
        gangs=(of(1, member(ONE, count=3), constraints=(gang_constraint(RAIL),)),),
        placed=("011",),
        pools=(railed(0, 1, name="n0"), railed(1, 1, 0, name="n1")),
    ),
    Case(
        name="no two devices of a gang on one rail",
        gangs=(
            of(1, member(ONE, count=2), constraints=(gang_constraint(distinct=RAIL),)),
        ),
        placed=("01",),
        pools=(railed(0, 0, name="n0"), railed(1, 1, name="n1")),
    ),
    Case(
        name="groups of one rail, each by its devices",
        gangs=(
            of(1, member(ONE, count=3), topology=(topology_rule(f"attribute:{RAIL}"),)),
        ),
        placed=("011",),
        pools=(railed(0, 1, name="n0"), railed(1, 1, 0, name="n1")),
    ),
    Case(
        name="two devices of a pod on one rail",
        gangs=(
            of(
                1,
                member(member_claim(request(count=2), constraints=[constraint(RAIL)])),
            ),
        ),
        placed=("1",),
        pools=(railed(0, 1, name="n0"), railed(1, 1, name="n1")),
    ),
    Case(
        name="two devices of a pod on different rails",
        gangs=(
            of(
                1,
                member(
                    member_claim(
                        request(count=2), constraints=[constraint(distinct=RAIL)]
                    )
                ),
            ),
        ),
        placed=("0",),
        pools=(railed(0, 1, name="n0"), railed(1, 1, name="n1")),
    ),
    Case(
        name="counters are not overdrawn",
        gangs=(of(1, member(ONE, count=2)), of(2, member(ONE, count=2))),
        placed=("01", ""),
        pools=(split(8, 5, 5, name="n0"), split(8, 5, 5, name="n1")),
    ),
    Case(
        name="shares consume no more than there is",
        gangs=(
            of(1, member(member_claim(request(capacity={"gbps": 3})), count=2)),
            of(2, member(member_claim(request(capacity={"gbps": 2})), count=1)),
        ),
        placed=("01", ""),
        pools=(sharing(4, "n0"), sharing(4, "n1")),
    ),
    Case(
        name="the second alternative where the first has no room",
        gangs=(
            of(
                1,
                member(
                    member_claim(
                        request(
                            first_available=[
                                sub_request("a", count=3),
                                sub_request("b", count=2),
                            ]
                        )
                    )
                ),
            ),
        ),
        placed=("0",),
    ),
    Case(
        name="all devices only where nobody has one",
        gangs=(
            of(1, member(ONE), priority=1),
            of(2, member(member_claim(request(mode="All")))),
        ),
        placed=("0", "1"),
    ),
    Case(
        name="with admin access nothing is taken",
        gangs=(
            of(1, member(member_claim(request(admin_access=True)), count=3)),
            of(2, member(TWO, count=2)),
        ),
        placed=("000", "01"),
    ),
    Case(
        name="the least pods of all gangs, then more of them",
        gangs=(
            of(1, member(ONE, count=4, min_count=1)),
            of(2, member(ONE, count=2)),
        ),
        placed=("01", "01"),
    ),
)


def place(case: Case) -> list[str]:
    """Take the gangs of a case in; the nodes of each one's pods, sorted."""
    pools: Sequence[ResourcePool] = case.pools or [
        pool(*devices(size), name=f"n{number}")
        for number, size in enumerate(case.sizes)
    ]
    names = [str(each.name) for each in pools]
    nodes = [
        node(name, labels={ZONE: zone})
        for name, zone in zip(names, case.zones, strict=True)
    ]
    snapshot = snapshot_of(
        {name: [each] for name, each in zip(names, pools, strict=True)}, case.gangs
    )
    problem = resolve_affinity(
        problem_of(observe_core(snapshot, *nodes, *case.running))
    )
    demand = Demand(problem.gangs)
    found = construct(demand, find_node_kinds(problem, demand.query))
    placed = {
        demand.gangs[item.gang].name: "".join(
            sorted(str(pod.node)[1:] for pods in item.members for pod in pods)
        )
        for item in found.placements
    }
    return [placed.get(f"g{number + 1}", "") for number in range(len(case.gangs))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gangs_are_put_where_the_rule_lets_them(case: Case) -> None:
    """What is listed is what the rule leaves, and nothing else does."""
    assert place(case) == list(case.placed)
