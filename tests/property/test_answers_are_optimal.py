"""The models say what trying everything says: verdict and value, on tiny problems."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from msgspec import structs

from contracts.gang import Gang, NodeToleration
from contracts.ids import DeviceID
from contracts.workload import Node, NodeTaint
from solver.allocate import allocate
from solver.decision import DECISION, Status
from solver.problem.problem import Problem
from tests.builders import (
    DRIVER,
    constraint,
    device,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    taint,
    toleration,
)
from tests.builders.problems import expected_of, observe_core, problem_of, snapshot_of
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.disagreement import disagreement

ROOT, NUMA = "resource.kubernetes.io/pcieRoot", f"{DRIVER}/numa"
MODEL = f'device.attributes["{DRIVER}"].model == "big"'
TAINT = NodeTaint(key="spare", effect="NoSchedule")
TOLERANT = NodeToleration(key="spare", operator="Exists")
ASKED: list[dict[str, str]] = [{}, {}, {"cpu": "1"}, {"cpu": "2500m"}]
SEEN: Counter[str] = Counter()
EXAMPLES = sized(100, 10_000)


@st.composite
def pools(draw: st.DrawFn, node: str) -> tuple[object, ...]:
    """One or two pools of a node; few values, so that much is equal."""
    found = []
    for index in range(draw(st.integers(1, 2))):
        content = []
        for number in range(draw(st.integers(1, 4 - index * 2))):
            attributes: dict[str, str | int] = {
                "model": draw(st.sampled_from(["big", "small"]))
            }
            if draw(st.integers(0, 9)):
                attributes[ROOT] = draw(st.sampled_from(["pci0", "pci1"]))
            if draw(st.integers(0, 9)):
                attributes["numa"] = draw(st.integers(0, 1))
            taints = (taint(),) if draw(st.integers(0, 5)) == 0 else ()
            content.append(device(f"d{number}", attributes=attributes, taints=taints))
        found.append(pool(*content, name=f"{node}-{index}"))
    return tuple(found)


@st.composite
def requests(draw: st.DrawFn, name: str) -> object:
    """A request for a few devices, or for all."""
    fields: dict[str, object] = {"name": name}
    if draw(st.integers(0, 7)) == 0:
        fields["mode"] = "All"
    else:
        fields["count"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        fields["select"] = (MODEL,)
    if draw(st.integers(0, 3)) == 0:
        fields["tolerations"] = (toleration(),)
    return request(**fields)  # type: ignore[arg-type]  # fields of one builder


@st.composite
def claims(draw: st.DrawFn, name: str) -> object:
    """A claim of one or two requests, with up to two constraints."""
    names = ["one", "two"][: draw(st.integers(1, 2))]
    constraints = []
    for _ in range(draw(st.integers(0, 2))):
        scope = draw(st.sampled_from([(), ("one",), tuple(names)]))
        attribute = draw(st.sampled_from([ROOT, NUMA]))
        if draw(st.integers(0, 2)):
            constraints.append(constraint(attribute, *scope))
        else:
            constraints.append(constraint(None, *scope, distinct=attribute))
    made = [draw(requests(item)) for item in names]
    return member_claim(*made, name=name, constraints=constraints)  # type: ignore[arg-type]  # drawn from builders


@st.composite
def gangs(draw: st.DrawFn, index: int) -> Gang:
    """A gang of one or two kinds of pods."""
    members = [
        member(
            draw(claims("c")),  # type: ignore[arg-type]  # drawn from builders
            name=f"m{number}",
            count=draw(st.integers(1, 2)),
            resources=draw(st.sampled_from(ASKED)),
            node_selector=draw(st.sampled_from([{}, {}, {}, {"zone": "a"}])),
            tolerations=draw(st.sampled_from([(), (TOLERANT,)])),
        )
        for number in range(draw(st.integers(1, 2)))
    ]
    return gang(
        *members,
        name=f"g{index}",
        uid=f"00000000-0000-4000-8000-{index:012}",
        priority=draw(st.sampled_from([0, 0, 5])),
    )


@st.composite
def observed(draw: st.DrawFn, name: str) -> Node:
    """What Kubernetes says of a node: little of everything, a taint now and then."""
    return node(
        name,
        labels={"zone": draw(st.sampled_from(["a", "a", "b"]))},
        allocatable={
            "cpu": draw(st.sampled_from([2, 4, 16])),
            "pods": draw(st.sampled_from([1, 2, 9])),
        },
        taints=draw(st.sampled_from([(), (), (), (TAINT,)])),
        unschedulable=draw(st.integers(0, 9)) == 0,
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """A few nodes, some devices taken, some gangs that want them."""
    nodes = {f"n{i}": draw(pools(f"n{i}")) for i in range(draw(st.integers(1, 3)))}
    names = [
        DeviceID(item.driver, item.name, d.name)  # type: ignore[attr-defined]  # pools
        for found in nodes.values()
        for item in found
        for d in item.devices  # type: ignore[attr-defined]  # pools
    ]
    taken = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    away = ["n0"] if draw(st.integers(0, 9)) == 0 else []
    wanted = [draw(gangs(i)) for i in range(draw(st.integers(1, 3)))]
    known = [draw(observed(name)) for name in nodes if draw(st.booleans())]
    snapshot = snapshot_of(nodes, wanted, taken=taken, away=away)  # type: ignore[arg-type]  # drawn from builders
    snapshot = observe_core(snapshot, *known)
    coming = [m for item in wanted for m in item.spec.members]
    kinds = draw(st.lists(st.sampled_from(coming), max_size=2))
    expected = [
        expected_of(
            snapshot,
            structs.replace(kind, count=1),
            weight=draw(st.sampled_from([1, 3])),
            size=draw(st.sampled_from([500, 1000, 2000])),
        )
        for kind in kinds
    ]
    return problem_of(snapshot, expected=tuple(chain(*expected)))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(problems())
def test_value_is_that_of_brute_force(problem: Problem) -> None:
    """Tiers equal the best of all answers as far as they are proven; 1 and 2 are.

    What is not proven is no better than the best, and the judge has agreed.
    """
    try:
        brute = Brute(problem)
        best = brute.value()
    except TooManyWaysError:
        reject()
    decision = allocate(problem)
    SEEN[
        "all"
        if all(g.members for g in decision.gangs)
        else "some"
        if any(g.members for g in decision.gangs)
        else "none"
    ] += 1
    assert decision.status is Status.OPTIMAL
    assert disagreement(decision.objective, brute.tiers(), best) == ""
    assert DECISION.decode(DECISION.encode(decision)) == decision


def test_both_verdicts_were_met() -> None:
    """The law above is about problems that fit, fit in part, and do not fit."""
    assert all(SEEN[key] for key in ("all", "some", "none")), SEEN
