"""The openb benchmark: its trace, the protocol of arrivals, the referee, the peers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec import structs

from benchmarks.openb import whole_nodes
from benchmarks.openb.arrivals import arrivals, arrived
from benchmarks.openb.fgd import FragmentationGradient
from benchmarks.openb.fleet import Fleet, Placement
from benchmarks.openb.ours import Moorings
from benchmarks.openb.peers import BestFit, FirstFit, LeastAllocated, Peer, RandomFit
from benchmarks.openb.run import one_by_one, play
from benchmarks.openb.trace import MILLI, Trace, TraceNode, TracePod, read_trace
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.problem import Parameters


def node(gpus: int = 2, model: str = "T4", cpu: int = 8000) -> TraceNode:
    return TraceNode(name="", cpu_milli=cpu, memory_mib=1024, gpus=gpus, model=model)


def pod(milli: int = 1000, gpus: int = 1, *, cpu: int = 0, spec: str = "") -> TracePod:
    return TracePod(
        pods=1, cpu_milli=cpu, memory_mib=0, gpus=gpus, gpu_milli=milli, gpu_spec=spec
    )


def trace(*pods: TracePod, nodes: tuple[TraceNode, ...] = (node(), node())) -> Trace:
    named = (structs.replace(n, name=f"node-{i}") for i, n in enumerate(nodes))
    return Trace(tuple(named), pods or (pod(),))


def test_trace_is_that_of_the_published_runs() -> None:
    """Nodes, GPUs and pods are those of the paper."""
    found = read_trace()
    assert len(found.nodes) == 1213
    assert found.capacity_milli == 6_212_000
    assert sum(p.pods for p in found.pods) == 8152
    assert sum(p.pods * p.asked_milli for p in found.pods) == 6_086_800
    assert Counter(n.model for n in found.nodes)["G2"] == 549


def test_arrivals_hold_every_pod_of_the_trace_and_end_at_the_load() -> None:
    """The next pod would ask for more than the load."""
    found = read_trace()
    pods = arrivals(found, seed=3)
    count = Counter(pods)
    assert all(count[p] >= p.pods for p in found.pods)
    asked = sum(p.asked_milli for p in pods)
    assert 1.28 < asked / found.capacity_milli < 1.301


def test_arrivals_repeat_with_their_seed_and_differ_between_seeds() -> None:
    """All policies see the same arrivals."""
    found = read_trace().part(20)
    assert arrivals(found, seed=1) == arrivals(found, seed=1)
    assert arrivals(found, seed=1) != arrivals(found, seed=2)


def test_a_mark_counts_the_pod_that_reaches_it() -> None:
    """Whoever reaches the mark has come before it is measured."""
    pods = [pod(500), pod(500), pod(0, 0), pod(1000)]
    assert arrived(pods, 1000) == 2
    assert arrived(pods, 1001) == 4
    assert arrived(pods, 9999) == 4


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        (pod(600), (0, 1)),
        (pod(gpus=2), (0, 0)),
        (pod(spec="A10|G2"), (0,)),
        (pod(cpu=8001), (0,)),
    ],
)
def test_referee_refuses_what_breaks_a_rule(
    asked: TracePod, gpus: tuple[int, ...]
) -> None:
    """A wrong proposal ends the run."""
    with pytest.raises(ValueError, match="does not fit"):
        Fleet(trace()).take(asked, Placement(0, gpus))


def test_referee_refuses_more_than_a_gpu_has() -> None:
    """Parts of a GPU add up."""
    fleet = Fleet(trace())
    fleet.take(pod(600), Placement(0, (0,)))
    assert list(fleet.fitting(pod(gpus=2))) == [1]
    with pytest.raises(ValueError, match="does not fit"):
        fleet.take(pod(600), Placement(0, (0,)))


@pytest.mark.parametrize("ties", [None, random.Random(1)])
def test_best_fit_fills_the_fullest_node_and_gpu(ties: random.Random | None) -> None:
    """What is whole stays whole as long as it can."""
    fleet = Fleet(trace())
    fleet.take(pod(300), Placement(1, (1,)))
    assert BestFit(ties).place(fleet, pod(300)) == Placement(1, (1,))
    assert BestFit(ties).place(fleet, pod(gpus=2)) == Placement(0, (0, 1))


def test_best_fit_breaks_ties_by_name() -> None:
    """As in the simulator of the published figures."""
    assert BestFit().place(Fleet(trace()), pod(300)) == Placement(0, (0,))


def test_random_fit_reaches_every_place_that_fits() -> None:
    """And no other one."""
    fleet, policy = Fleet(trace()), RandomFit(seed=1)
    found = {policy.place(fleet, pod(300)) for _ in range(100)}
    assert len(found) == 4


def test_gradient_keeps_whole_gpus_for_those_that_need_them() -> None:
    """A part goes where a part was taken already."""
    wanted = trace(pod(), pod(500))
    fleet = Fleet(wanted)
    policy = FragmentationGradient(wanted, fleet)
    fleet.take(pod(500), Placement(1, (1,)))
    assert policy.place(fleet, pod(500)) == Placement(1, (1,))


def test_gradient_uses_the_nodes_whose_gpus_nobody_could_use() -> None:
    """What is fragmented already costs nothing."""
    wanted = trace(pod(cpu=5000), nodes=(node(), node(cpu=6000)))
    fleet = Fleet(wanted)
    policy = FragmentationGradient(wanted, fleet)
    fleet.take(pod(cpu=2000), Placement(1, (0,)))
    assert policy.place(fleet, pod()) == Placement(1, (1,))


def test_gradient_remembers_no_score_of_a_node_that_changed() -> None:
    """Kept scores are those that would be computed anew."""
    whole = read_trace().part(40)
    fleet = Fleet(whole)
    policy = FragmentationGradient(whole, fleet)
    for asked in arrivals(whole, seed=1):
        found = policy.place(fleet, asked)
        assert found == FragmentationGradient(whole, fleet).place(fleet, asked)
        if found is not None:
            fleet.take(asked, found)


@pytest.mark.parametrize("policy", [RandomFit(1), BestFit()])
def test_pods_that_fit_nowhere_are_refused(policy: Peer) -> None:
    """By size and by model, whatever the policy."""
    fleet = Fleet(trace())
    assert policy.place(fleet, pod(gpus=3)) is None
    assert policy.place(fleet, pod(spec="G2")) is None


def test_a_run_counts_what_came_until_each_mark() -> None:
    """Free GPUs are measured when the load is reached."""
    wanted = trace(nodes=(node(gpus=1),))
    fleet = Fleet(wanted)
    pods = [pod(700), pod(400), pod(200)]
    outcome = play(wanted, pods, fleet, one_by_one(BestFit(), fleet), 1)
    assert outcome.unallocated == pytest.approx((30.0, 10.0))
    assert outcome.refused == (1, 1)


def test_a_batch_ends_where_it_is_measured() -> None:
    """No policy knows pods that have not come yet."""
    wanted, seen = trace(nodes=(node(),)), []

    def place(batch: Sequence[TracePod]) -> list[Placement | None]:
        seen.append(len(batch))
        return [None for _ in batch]

    play(wanted, [pod()] * 5, Fleet(wanted), place, 4)
    assert seen == [2, 1]


@pytest.mark.parametrize("batch", [1, 3])
def test_moorings_shares_gpus_and_keeps_models_and_whole_gpus(batch: int) -> None:
    """Whatever the size of a batch."""
    wanted = trace(nodes=(node(cpu=0), node(gpus=1, model="G2", cpu=0))).devices_only()
    pods = [pod(600), pod(spec="A10|G2"), pod(400), pod(500), pod(500), pod()]
    with SelectorEvaluator() as evaluator:
        ours = Moorings(wanted, evaluator, Parameters(version="test"))
        outcome = play(wanted, pods, Fleet(wanted), ours.place, batch)
    assert outcome.unallocated[-1] == 0
    assert outcome.refused[-1] == 1


def test_a_whole_node_stays_free_where_pods_come_one_by_one() -> None:
    """Spread over all nodes as by default scores, none does."""
    first, spread, best = (
        whole_nodes.play(whole_nodes.of_peer(peer), 1, 300).share
        for peer in (FirstFit(), LeastAllocated(), BestFit())
    )
    assert spread < 0.5
    assert min(first, best) > 0.9


def test_moorings_lets_pods_go() -> None:
    """What a pod had is there for the next one."""
    (eight,) = (pod for pod in whole_nodes.fleet().pods if pod.gpus == 8)
    with SelectorEvaluator() as evaluator:
        policy = whole_nodes.ours(evaluator)
        places = [policy.place(eight) for _ in range(whole_nodes.NODES)]
        assert None not in places
        assert policy.place(eight) is None
        assert places[7] is not None
        policy.end(eight, places[7])
        assert policy.place(eight) == places[7]


def test_a_pod_that_ended_gives_back_what_it_had() -> None:
    """All policies meet the same fleet."""
    there = whole_nodes.fleet()
    eight = there.pods[-1]
    nodes = Fleet(there)
    place = Placement(3, nodes.idle(3, eight.gpus))
    nodes.take(eight, place)
    assert nodes.gpus[3].sum() == 0
    nodes.give_back(eight, place)
    assert nodes.gpus[3].sum() == 8 * MILLI
    assert nodes.cpu[3] == there.nodes[3].cpu_milli
