"""A reason that blames devices, nodes or constraints is true, as trying all ways says.

It speaks of the gang as if it were alone on the cluster as it is: then no way to place
its pods may exist. That others come first is said only of who has a place alone.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.pods.pod_rules import PodRules
from solver.allocate import allocate
from solver.kinds.affinity.resolve import resolve_affinity
from solver.problem.affinity.rules import ResolvedRules
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from tests.builders import (
    DRIVER,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import problem_of, snapshot_of
from tests.draw.everything import TINY_WITH_RARE, draw_everything
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError

BATCHES = sized(40, 20_000)
AT_ONCE = BATCHES // 10
OF_OTHERS = {
    Rule.POD_APART,
    Rule.POD_NEAR,
    Rule.POD_SPREAD,
    Rule.GROWING,
    Rule.CLAIM_SHARED,
    Rule.QUOTA,
    Rule.RESOURCE_QUOTA,
    Rule.NOT_MODELLED,
}
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, BATCHES, AT_ONCE))
def test_whoever_is_refused_has_no_place_alone(first: int) -> None:
    """So says every reason that is not about others."""
    for seed in range(first, first + AT_ONCE):
        problem, _ = draw_everything(seed, TINY_WITH_RARE)
        decision = allocate(problem)
        for part, decided in zip(problem.gangs, decision.gangs, strict=True):
            rules = {reason.rule for reason in decided.reasons}
            if part.refused or not rules or rules & OF_OTHERS:
                continue
            if "no place" in say(decided.reasons):
                SEEN["nothing is blamed"] += 1
                continue
            try:
                has_place = can_be_placed(problem, part)
            except TooManyWaysError:
                SEEN["skipped"] += 1
                continue
            is_outranked = Rule.OUTRANKED in rules
            assert has_place == is_outranked, f"seed {seed}: {say(decided.reasons)}"
            check_together(problem, part, say(decided.reasons))
            SEEN.update(map(str, rules))


def check_together(problem: Problem, part: GangPart, said: str) -> None:
    """See that each pod fits where that is said, and that as many do at once."""
    if " fits " not in said:
        return
    core = part.core
    assert said.startswith("its pod", said.index(": ") + 2) == (core.pods == 1), said
    free = {"pod_rules": PodRules(), "resolved": ResolvedRules()}
    for each in core.members:
        one = structs.replace(each, count=1, min_count=None, **free)
        alone = structs.replace(core, members=(one,), constraints=(), topology=())
        assert can_be_placed(problem, alone), said
    SEEN["each fits"] += 1
    if (found := re.search(r"at most (\d+) of \d+ pods at once", said)) is not None:
        (only,) = core.members
        room = int(found[1])
        for count in (room, room + 1):
            fewer = structs.replace(only, count=count, min_count=None)
            some = structs.replace(core, members=(fewer,))
            assert can_be_placed(problem, some) == (count == room), said
        SEEN["at most"] += 1


def test_values_that_pods_need_in_common_are_counted_right() -> None:
    """Where several constraints ask for a value of one attribute each."""
    seen: Counter[bool] = Counter()
    for seed in range(sized(60, 3_000)):
        problem = draw_alike(random.Random(f"alike {seed}"))
        (decided,) = allocate(problem).gangs
        has_place = Brute(problem).value()[0] > 0
        assert bool(decided.members) == has_place, f"seed {seed}"
        said = say(decided.reasons)
        counts = "constraints each need a value" in said
        assert not (counts and has_place), f"seed {seed}: {said}"
        seen.update({counts})
    assert min(seen[True], seen[False]) > seen.total() // 10, seen


def draw_alike(draw: random.Random) -> Problem:
    """Draw pods that need devices of several rails in common; few nodes have them."""
    names, rails = ["n0", "n1"], range(3)
    pools = {
        name: [
            pool(
                *(
                    device(f"d{n}", attributes={"rail": draw.choice(rails)})
                    for n in range(draw.randint(2, 4))
                ),
                name=name,
            )
        ]
        for name in names
    }
    requests = [request(f"r{n}") for n in range(draw.randint(2, 3))]
    asked = gang(
        member(member_claim(*requests, name="c"), name="w", count=2),
        constraints=tuple(
            gang_constraint(f"{DRIVER}/rail", f"w/c/{each.name}") for each in requests
        ),
    )
    return problem_of(snapshot_of(pools, [asked]))


def can_be_placed(problem: Problem, gang: GangPart) -> bool:
    """Try all ways to place one gang alone, with the pods that it needs."""
    alone = problem.with_gangs((gang.core,))
    return Brute(resolve_affinity(alone)).value()[0] > 0


def say(reasons: tuple[Reason, ...]) -> str:
    return "; ".join(map(str, reasons))


def test_many_causes_were_met() -> None:
    """The law above is about every cause."""
    blamed = SEEN.total() - SEEN["skipped"] - SEEN["nothing is blamed"]
    assert blamed > BATCHES // 8, SEEN
    assert len(SEEN) > 4, SEEN
