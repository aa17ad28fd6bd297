"""Gang by gang, node by node, the first solution, as kube-scheduler would."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.allocation import Rule
from contracts.features import Features
from contracts.gang import Gang, MemberClaim
from moorings.upstream import search
from moorings.upstream import search as search_module
from moorings.upstream.allocate import allocate_upstream
from moorings.upstream.probe import first_solution, may_meet_errors
from moorings.upstream.search import LOOKING, Search
from solver.decision import Decision, GangDecision, Status
from solver.engines import cpsat
from solver.errors import AbortedError, FatalError, StepsSpentError
from tests.builders import (
    DRIVER,
    constraint,
    counter_set,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
)
from tests.builders.neighbours import apart, caring, running, term, zoned
from tests.builders.patterns import nodes_of_sizes
from tests.builders.problems import PARAMETERS, observe_core, problem_of, snapshot_of
from tests.builders.upstream import PodAtNode, pod_at_node

UID = "00000000-0000-4000-8000-{:012}"


def gang_of(number: int, count: int = 1, devices: int = 1) -> Gang:
    """Make a gang of equal pods; those with lower numbers come first."""
    pod = member(member_claim(request(count=devices)), count=count)
    return gang(pod, name=f"g{number}", uid=UID.format(number))


def decide(sizes: tuple[int, ...], *gangs: Gang) -> Decision:
    """Decide on nodes `n0`, `n1`, ... of these sizes."""
    return allocate_upstream(problem_of(snapshot_of(nodes_of_sizes(*sizes), gangs)))


def nodes_of(decision: GangDecision) -> list[str]:
    """List the nodes of a gang's pods."""
    return [str(allocated.node) for allocated in decision.members]


def test_a_pod_goes_to_the_first_node_that_serves_it() -> None:
    """By name, whatever is left over there."""
    decision = decide((1, 4, 2), gang_of(0, devices=2), gang_of(1))
    first, second = decision.gangs
    assert (nodes_of(first), nodes_of(second)) == (["n1"], ["n0"])
    assert decision.status is Status.FEASIBLE


def test_pods_have_no_device_in_common() -> None:
    """What one took is in use for the next, of this gang and of others."""
    decision = decide((2, 2), gang_of(0, count=3), gang_of(1))
    devices_taken = [
        (allocated.node, result.device)
        for decided in decision.gangs
        for allocated in decided.members
        for claim in allocated.claims
        for result in claim.allocation.devices.results
    ]
    assert len(set(devices_taken)) == len(devices_taken) == 4


def test_a_gang_that_does_not_fit_leaves_nothing_behind() -> None:
    """Its pods give back what they took, and the next one has it."""
    decision = decide((2,), gang_of(0, count=3), gang_of(1, count=2))
    refused, served = decision.gangs
    assert [reason.rule for reason in refused.reasons] == [Rule.NO_CANDIDATE]
    assert not refused.failed
    assert nodes_of(served) == ["n0", "n0"]


def test_a_gang_has_the_pods_that_fit_if_they_are_enough() -> None:
    """In order, as many as find a node."""
    for least, placed in ((2, 3), (4, 0)):
        pods = member(member_claim(), count=5, min_count=least)
        (found,) = allocate_upstream(
            problem_of(snapshot_of(nodes_of_sizes(1, 2), [gang(pods)]))
        ).gangs
        assert [pod.index for pod in found.members] == list(range(placed))


def test_a_node_takes_no_more_pods_than_its_resources_allow() -> None:
    """Devices alone do not make room."""
    pods = member(resources={"cpu": 2}, count=3)
    nodes = nodes_of_sizes(4, 4)
    snapshot = snapshot_of(nodes, [gang(pods)])
    snapshot = observe_core(
        snapshot, *(node(name, allocatable={"cpu": 5, "pods": 9}) for name in nodes)
    )
    (decided,) = allocate_upstream(problem_of(snapshot)).gangs
    assert nodes_of(decided) == ["n0", "n0", "n1"]


def test_counters_and_shares_are_used_up_pod_by_pod() -> None:
    """A card of 10 bears one part of 6, and two shares of 4 fit into 10."""
    parts = devices(2, consumes={"card": {"memory": 6}})
    of_parts = [pool(*parts, name="n", counters=[counter_set("card", memory=10)])]
    asked = [gang_of(0), gang_of(1)]
    first, second = allocate_upstream(
        problem_of(snapshot_of({"n": of_parts}, asked))
    ).gangs
    assert (first.verdict, second.verdict) == ("allocated", "none")
    shared = device(allow_multiple_allocations=True, capacity={"memory": 10})
    claim = member_claim(request(capacity={"memory": 4}))
    sharing = [gang(member(claim), name=f"g{i}", uid=UID.format(i)) for i in range(3)]
    decision = allocate_upstream(
        problem_of(snapshot_of({"n": [pool(shared, name="n")]}, sharing))
    )
    assert [decided.verdict for decided in decision.gangs] == [
        "allocated",
        "allocated",
        "none",
    ]


def test_an_error_ends_the_attempt_and_says_so() -> None:
    """Even where a later node would serve the pod."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    nodes = {
        "a": [pool(device("bad"), name="a")],
        "b": [pool(device("good", attributes={"model": "x"}), name="b")],
    }
    asking = gang(member(member_claim(request(select=[chosen]))))
    (decided,) = allocate_upstream(problem_of(snapshot_of(nodes, [asking]))).gangs
    assert decided.verdict == "error"
    assert [reason.rule for reason in decided.reasons] == [Rule.INVALID]
    assert "no such key: model" in decided.reasons[0].message


def test_who_is_out_of_time_or_steps_has_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Out of time is an error of the attempt; out of steps is not proven."""
    problem = problem_of(snapshot_of(nodes_of_sizes(3), [gang_of(0, devices=3)]))
    (late,) = allocate_upstream(problem, lambda: True).gangs
    assert (late.failed, late.reasons[0].rule) == (True, Rule.NOT_PROVEN)
    monkeypatch.setattr(search, "STEPS", 2)
    decision = allocate_upstream(problem)
    assert decision.status is Status.NOT_PROVEN
    assert not decision.gangs[0].failed


def test_pods_with_rules_about_each_other_are_refused() -> None:
    """Those that run still keep their nodes for themselves."""
    asks = caring(2, affinity=apart(term()))
    (refused,) = allocate_upstream(problem_of(zoned("a", "a", gangs=[asks]))).gangs
    assert refused.reasons[0].rule is Rule.NOT_MODELLED
    jealous = running("n0", app="y", affinity=apart(term()))
    snapshot = zoned("a", "a", gangs=[caring(1)], running=[jealous])
    (found,) = allocate_upstream(problem_of(snapshot)).gangs
    assert nodes_of(found) == ["n1"]


ON_RAIL = constraint(f"{DRIVER}/rail")


def test_devices_are_taken_from_the_first_on() -> None:
    """Request by request, claim by claim."""
    pod = pod_at_node(
        devices(4),
        member_claim(request("a"), request("b", count=2), name="one"),
        member_claim(name="two"),
    )
    search = pod.search()
    assert search.run()
    assert search.devices == [[[0], [1, 2]], [[3]]]


def test_a_choice_that_leads_nowhere_is_undone() -> None:
    """The first device is alone on its rail; the next two are not."""
    content = [device(f"d{i}", attributes={"rail": "xyy"[i]}) for i in range(3)]
    claim = member_claim(request("a"), request("b"), constraints=[ON_RAIL])
    search = pod_at_node(content, claim).search()
    assert search.run()
    assert search.devices == [[[1], [2]]]


def test_alternatives_are_tried_in_their_order() -> None:
    """The first that leaves a solution for all that follows."""
    either = request(
        first_available=[sub_request("many", count=3), sub_request("few", count=2)]
    )
    search = pod_at_node(devices(3), member_claim(either, request("last"))).search()
    assert search.run()
    assert search.chosen == [[1, 0]]
    assert search.devices == [[[0, 1], [2]]]
    assert search.chosen_request(0, 0).part.name == "few"


def test_without_a_solution_nothing_is_given_out() -> None:
    """Another node may be asked."""
    search = pod_at_node(devices(2), member_claim(request(count=3))).search()
    assert not search.run()
    assert search.devices == [[[]]]


def test_a_request_has_each_device_once() -> None:
    """Two shares of one device are not two devices."""
    shared = device(allow_multiple_allocations=True, capacity={"memory": 10})
    pair = member_claim(request(count=2, capacity={"memory": 1}))
    assert not pod_at_node([shared], pair).search().run()
    two = member_claim(*(request(name, capacity={"memory": 1}) for name in "ab"))
    assert pod_at_node([shared], two).search().run()


def test_a_fault_matters_only_if_the_search_meets_it() -> None:
    """Behind the device that serves the request nobody looks."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    claim = member_claim(request(select=[chosen]))
    good, bad = device("good", attributes={"model": "x"}), device("bad")
    assert pod_at_node([good, bad], claim).search().run()
    with pytest.raises(FatalError, match="no such key: model"):
        pod_at_node([bad, good], claim).search().run()


def test_a_search_ends_when_the_callers_time_is_over() -> None:
    """It looks at the clock first, and every so many choices."""
    pod = pod_at_node(devices(2 * LOOKING), member_claim(request(count=1)))
    over = Search(pod.problem, pod.world, pod.member, lambda: True)
    with pytest.raises(AbortedError):
        over.run()


def test_a_search_gives_up_after_so_many_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rather than never to end."""
    monkeypatch.setattr(search_module, "STEPS", 5)
    pod = pod_at_node(devices(9), member_claim(request(count=9)))
    with pytest.raises(StepsSpentError):
        pod.search().run()


def test_probes_find_what_the_plain_search_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it takes long, and no error can be met on the way."""
    content = [device(f"d{i}", attributes={"rail": "xyyzzz"[i]}) for i in range(6)]
    claim = member_claim(request("a"), request("b", count=2), constraints=[ON_RAIL])
    plain = pod_at_node(content, claim).search()
    monkeypatch.setattr(search_module, "PROBING", 2)
    probing = pod_at_node(content, claim).search()
    assert plain.run()
    assert probing.run()
    assert plain.devices == probing.devices == [[[3], [4, 5]]]


def may_fail(pod: PodAtNode) -> bool:
    """Whether a search for this pod could abort."""
    return may_meet_errors(pod.world, pod.requests(), pod.state().constraints)


@pytest.mark.parametrize(
    "claim",
    [
        member_claim(request(count=2)),
        member_claim(request("a"), request("b", count=2), constraints=[ON_RAIL]),
        member_claim(
            request(
                "a",
                first_available=[
                    sub_request("many", count=6),
                    sub_request("few", count=2),
                ],
            ),
            request("b"),
        ),
        member_claim(request("a", mode="All")),
    ],
)
def test_a_probe_chooses_what_the_search_chooses(claim: MemberClaim) -> None:
    """Alternative by alternative, device by device."""
    content = [device(f"d{i}", attributes={"rail": "xyyzzz"[i]}) for i in range(6)]
    pod = pod_at_node(content, claim)
    search = pod.search()
    assert search.run()
    solution = first_solution(pod.problem, pod.world, pod.member)
    assert solution == (search.chosen[0], search.devices[0])


def test_what_has_no_solution_is_told_as_such() -> None:
    """By a proof, not by a search that ends."""
    pod = pod_at_node(devices(2), member_claim(request(count=3)))
    assert first_solution(pod.problem, pod.world, pod.member) is None


def test_a_probe_without_an_answer_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not proven is neither a solution nor the lack of one."""
    monkeypatch.setattr(
        cpsat, "solve", lambda *_, **__: cpsat.Unknown(work=1.0, bound=0.0)
    )
    pod = pod_at_node(devices(2), member_claim(request()))
    with pytest.raises(StepsSpentError):
        first_solution(pod.problem, pod.world, pod.member)


def test_a_probe_must_not_hide_an_error_that_the_search_would_meet() -> None:
    """A selector that fails somewhere, or a list while lists are off."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    failing = member_claim(request(select=[chosen]))
    assert may_fail(pod_at_node(devices(2), failing))
    assert not may_fail(pod_at_node(devices(2, attributes={"model": "x"}), failing))
    matching = member_claim(request(count=2), constraints=[ON_RAIL])
    lists = devices(2, attributes={"rail": ["x", "y"]})
    assert may_fail(pod_at_node(lists, matching))
    assert not may_fail(pod_at_node(lists, matching, list_type_attributes=True))


def test_devices_that_need_resources_of_their_node_are_not_decided() -> None:
    """Kube-scheduler counts their CPUs against the node; nobody here does."""
    content = [structs.replace(device("d"), node_allocatable_resources={"cpu": {}})]
    one = gang(member(member_claim(request())))
    features = Features(node_allocatable_resources=True)
    parameters = structs.replace(PARAMETERS, features=features)
    nodes = {"n": [pool(*content, name="n")]}
    problem = problem_of(snapshot_of(nodes, [one]), parameters)
    (answer,) = allocate_upstream(problem).gangs
    assert (answer.failed, answer.reasons[0].rule) == (True, Rule.NOT_MODELLED)
    (known,) = allocate_upstream(problem_of(snapshot_of(nodes, [one]))).gangs
    assert nodes_of(known) == ["n"]
