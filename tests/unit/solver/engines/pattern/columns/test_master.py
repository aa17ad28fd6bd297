"""The master program: its bound holds, and its columns are an answer in parts."""

from __future__ import annotations

from operator import mul

from msgspec import structs

from solver.engines.pattern.columns.master import (
    FEW_PERTURBATIONS,
    PERTURBATIONS,
    Master,
    MasterResult,
)
from solver.engines.pattern.columns.master_data import SCALE, MasterData, count_pods
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Prices
from solver.kinds.demand import GangKind
from tests.builders import gang, member, member_claim, request
from tests.builders.patterns import gangs_model, nodes_of_sizes, pattern_model

UID = "00000000-0000-4000-8000-{:012}"


def run(
    model: PatternModel, objective: Objective, *floors: Floor
) -> tuple[Master, MasterResult]:
    """Generate columns until none is better."""
    master = Master(model.data, objective, floors)
    return master, master.run(model.pricing, model.bound_pricing, model.first_prices)


def model_of(gangs: int, *sizes: int, devices: int = 1) -> PatternModel:
    """Ask for so many gangs of one pod on nodes of these sizes."""
    pod = member(member_claim(request(count=devices)))
    return pattern_model(
        nodes_of_sizes(*sizes),
        *(gang(pod, name=f"g{i}", uid=UID.format(i)) for i in range(gangs)),
    )


def test_the_bound_is_what_nodes_can_take_in_whole_pods() -> None:
    """A pair leaves one of three devices over, which fractions cannot use."""
    _, result = run(model_of(9, 3, 3, devices=2), Objective((1,)))
    assert result.bound == 2
    _, result = run(model_of(1, 3, 3, devices=2), Objective((1,)))
    assert result.bound == 1


def test_columns_use_each_cluster_once_at_most() -> None:
    """And supply no fewer pods than the bound says."""
    model = model_of(9, 3, 4)
    _, result = run(model, Objective((1,)))
    assert result.bound == 7
    share_by_cluster: dict[int, float] = {}
    for column in result.columns:
        owners = {owner for owner, _, _ in column.uses}
        (cluster,) = (
            number
            for number, classes in enumerate(model.data.clusters)
            if owners <= set(classes)
        )
        share = share_by_cluster.get(cluster, 0.0) + column.share
        share_by_cluster[cluster] = share
    assert all(share <= 1 + 1e-6 for share in share_by_cluster.values())
    pods = sum(
        column.share * nodes * count
        for column in result.columns
        for _, pattern, nodes in column.uses
        for _, count in pattern.counts
    )
    assert pods >= 7 - 1e-6


def test_a_floor_costs_what_an_earlier_goal_keeps() -> None:
    """Two pods of a device each are on one node of two; three need another."""
    model = model_of(3, 2, 2)
    few = Objective((0,), touched=1)
    for pods, nodes in ((2, 1), (3, 2)):
        _, result = run(model, few, Floor(Objective((1,)), pods))
        assert result.bound == -nodes
    _, result = run(model, few)
    assert result.bound == 0


def test_gains_are_what_gangs_are_worth_beyond_their_pods() -> None:
    """Four devices for pods of one: what is worth least is what they cost."""
    model = gangs_model((2, 1), (3, 1), (5, 1), sizes=(4,))
    worth = {2: 8, 3: 9, 5: 10}
    pods = [kind.members[0][1] for kind in model.data.gangs]
    _, result = run(model, Objective(tuple(worth[count] for count in pods)))
    gains = dict(zip(pods, result.gains, strict=True))
    assert gains == {2: 2 * SCALE, 3: 0, 5: -5 * SCALE}
    assert result.bound == 8 + 2 * 3


def test_every_cut_holds_for_the_pods_of_the_nodes() -> None:
    """At the prices of a cut four devices earn no more than it says."""
    _, result = run(model_of(9, 4), Objective((1,)))
    assert result.cuts
    assert all(4 * cut.prices[0] <= cut.earned for cut in result.cuts)


def test_a_column_is_added_once() -> None:
    """Nor is one of nodes without pods."""
    model = model_of(2, 2)
    master = Master(model.data, Objective((1,)), ())
    _, (pattern,) = model.pricing.find_best(Prices((1,)))
    assert master.add_columns([(0, pattern, 1)])
    assert not master.add_columns([(0, pattern, 1)])
    _, (empty,) = model.pricing.find_best(Prices((0,)))
    assert not master.add_columns([(0, empty, 1)])


def test_pods_of_gangs_are_counted_by_member_kind() -> None:
    """A gang of two pods twice, and a mixed one."""
    kinds = (GangKind(0, 2, ((0, 2),)), GangKind(0, 3, ((0, 1), (1, 1))))
    data = MasterData(kinds, (5, 5), 2, (4,), ((0,),))
    assert count_pods(data, (1, 2)) == (4, 2)
    assert count_pods(data, (0, 0)) == (0, 0)


def test_a_master_that_runs_again_is_as_good_as_a_new_one() -> None:
    """Other numbers of the same gangs: the same bound, and cuts that hold."""
    model = gangs_model((2, 1), (3, 1), (5, 1), sizes=(4, 7, 7))
    objective = Objective(tuple(kind.weight for kind in model.data.gangs))
    master, _ = run(model, objective)
    for available in ((1, 0, 0), (1, 1, 0), (3, 2, 1), (0, 0, 0), (5, 5, 5)):
        again = master.run_again(model.pricing, model.bound_pricing, available)
        assert again is not None
        fresh = Master(structs.replace(model.data, available=available), objective, ())
        expected = fresh.run(model.pricing, model.bound_pricing, model.first_prices)
        assert again.bound == expected.bound
        # 10 of 18 devices: no cut may say that these three gangs do not fit.
        pods = count_pods(model.data, (1, 1, 1))
        assert again.cuts
        for cut in again.cuts:
            assert sum(map(mul, cut.prices, pods)) <= cut.earned


def test_only_a_run_again_without_room_for_all_gangs_varies_prices_less() -> None:
    """Cuts are one a round and one for each time that prices were varied."""
    model = gangs_model((2, 1), (3, 1), sizes=(4,))
    objective = Objective(tuple(kind.weight for kind in model.data.gangs))
    master, first = run(model, objective)
    assert len(first.cuts) > PERTURBATIONS
    for available, varied in (((1, 1), FEW_PERTURBATIONS), ((1, 0), PERTURBATIONS)):
        again = master.run_again(model.pricing, model.bound_pricing, available)
        assert again is not None
        assert varied < len(again.cuts) <= varied + 3
