"""Whole nodes and whole gangs, decided together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.integer_master import (
    IntegerMaster,
    IntegerResult,
    Solution,
    count_short,
    count_spare_places,
)
from solver.engines.pattern.columns.master_data import MasterData, PatternUse
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern
from solver.kinds.demand import GangKind

ONE, TRIPLE = GangKind(0, 1, ((0, 1),)), GangKind(0, 3, ((0, 3),))
DATA = MasterData((ONE, TRIPLE), (5, 5), 1, (2, 1), ((0, 1),))
"""Two nodes of class 0, one of class 1."""
PAIR, SINGLE = Pattern((1, 2), ((0, 2),)), Pattern((3,), ((0, 1),))
PATTERNS = {0: [PAIR], 1: [SINGLE]}


def solve(
    patterns: Mapping[int, Sequence[Pattern]],
    objective: Objective,
    *,
    floors: Sequence[Floor] = (),
    fixed: Sequence[PatternUse] = (),
    most: int = 99,
) -> IntegerResult:
    """Decide over these patterns."""
    master = IntegerMaster(DATA, patterns, Solution((0, 0), tuple(fixed)))
    master.add_floors(floors)
    return master.solve(objective, most, Budget(10.0, 1), 10.0)


def pods_of(solution: Solution | None) -> int:
    """Count the pods that the patterns of a solution supply."""
    assert solution is not None
    return sum(
        pods * nodes for _, used, nodes in solution.uses for _, pods in used.counts
    )


def test_gangs_take_no_more_pods_than_patterns_supply() -> None:
    """Three nodes supply five pods, and no class more than its nodes."""
    result = solve(PATTERNS, Objective((1, 3)))
    assert (result.value, result.bound) == (5, 5)
    assert pods_of(result.solution) == 5
    another = Pattern((4,), ((0, 1),))
    assert solve({0: [PAIR], 1: [SINGLE, another]}, Objective((1, 3))).value == 5


def test_a_gang_is_in_whole_or_not_at_all() -> None:
    """Of five pods a triple and no second one; the bound says so too."""
    result = solve(PATTERNS, Objective((0, 3)))
    assert (result.value, result.bound) == (3, 3)


def test_classes_that_are_not_free_keep_what_they_use() -> None:
    """Their pods count, whatever else could be used."""
    result = solve({0: [PAIR]}, Objective((1, 0)), fixed=[(1, SINGLE, 1)])
    assert result.value == 5
    assert result.solution is not None
    assert (1, SINGLE, 1) in result.solution.uses
    assert solve({0: [PAIR]}, Objective((1, 0))).value == 4


def test_a_floor_keeps_what_an_earlier_goal_reached() -> None:
    """Fewer nodes, but the same gangs."""
    floor = Floor(Objective((1, 3)), 4)
    result = solve(PATTERNS, Objective((0, 0), touched=1), floors=[floor], most=0)
    assert result.value == -2
    assert pods_of(result.solution) == 4


def test_floors_that_nothing_meets_leave_no_solution() -> None:
    """The bound that was known stays."""
    floor = Floor(Objective((1, 3)), 6)
    result = solve(PATTERNS, Objective((1, 3)), floors=[floor], most=7)
    assert result == IntegerResult(None, 0, 7)


def test_gangs_that_are_not_free_stay() -> None:
    """One triple stays in; the singles may come."""
    start = Solution((0, 1), ((0, PAIR, 2),))
    master = IntegerMaster(DATA, PATTERNS, start, free_gangs={0})
    result = master.solve(Objective((1, 0)), 99, Budget(10.0, 1), 10.0)
    assert result.solution is not None
    assert result.solution.gangs == (2, 1)


def test_as_few_pods_as_can_be_are_short() -> None:
    """Two triples have six pods, three nodes supply five: one has no place."""
    master = IntegerMaster(DATA, PATTERNS, shortage_costs=(8,))
    master.add_floors([Floor(Objective((0, 1)), 2)])
    result = master.solve(None, 0, Budget(10.0, 1), 10.0)
    assert (result.value, result.bound) == (-8, -8)
    assert result.solution is not None
    assert result.solution.gangs[1] >= 2
    assert pods_of(result.solution) == 5


def test_no_shortage_makes_up_for_a_floor() -> None:
    """Six triples are more than there are."""
    master = IntegerMaster(DATA, PATTERNS, shortage_costs=(8,))
    master.add_floors([Floor(Objective((0, 1)), 6)])
    assert master.solve(None, 0, Budget(10.0, 1), 10.0).solution is None


def test_pods_may_lack_a_place_at_a_cost() -> None:
    """Five pods have places; a sixth is worth it only where it costs less than that."""
    for cost, gangs in ((1, (3, 1)), (3, (2, 1))):
        start = Solution((0, 0), ())
        master = IntegerMaster(DATA, PATTERNS, start, shortage_costs=(cost,))
        result = master.solve(Objective((1, 3)), 6, Budget(10.0, 1), 10.0)
        assert result.solution is not None
        taken = result.solution.gangs
        pods = sum(count * each for count, each in zip(taken, (1, 3), strict=True))
        assert pods == sum(n * each for n, each in zip(gangs, (1, 3), strict=True))
        short = count_short(DATA, result.solution)
        assert short == [pods - 5]
        assert result.value == 2 * pods - cost * short[0]


def test_pods_without_a_place_are_counted_by_kind() -> None:
    """Places that nobody asked for make up for none of another kind."""
    data = MasterData((ONE, GangKind(0, 1, ((1, 2),))), (5, 5), 2, (2,), ((0,),))
    assert count_short(data, Solution((1, 1), ((0, PAIR, 1),))) == [0, 2]


def test_places_without_a_pod_are_counted_by_kind() -> None:
    """Pods of another kind that lack one do not take them, and count below 0."""
    data = MasterData((ONE, GangKind(0, 1, ((1, 2),))), (5, 5), 2, (2,), ((0,),))
    assert count_spare_places(data, Solution((1, 1), ((0, PAIR, 1),))) == [1, -2]
    assert count_spare_places(data, Solution((2, 0), ((0, PAIR, 2),))) == [2, 0]
    assert count_spare_places(data, Solution((3, 0), ((0, PAIR, 1),))) == [-1, 0]


def test_an_answer_that_is_short_of_places_is_a_whole_hint() -> None:
    """With no work to speak of, what it begins with comes back."""
    start = Solution((2, 2), ((0, PAIR, 1), (1, SINGLE, 1)))
    master = IntegerMaster(DATA, PATTERNS, start, shortage_costs=(1,))
    master.add_floors([Floor(Objective((1, 3)), 8)])
    proto = master._model.proto
    assert sorted(proto.solution_hint.vars) == list(range(len(proto.variables)))
    hinted = dict(
        zip(proto.solution_hint.vars, proto.solution_hint.values, strict=True)
    )
    short = next(v.index for v, _ in master._shortage)
    assert hinted[short] == 8 - 3
