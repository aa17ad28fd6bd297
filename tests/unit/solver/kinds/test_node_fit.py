"""Each of kube-scheduler's filters that is modelled lets in what it should, no more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from contracts.allocation import Rule
from contracts.features import features_of
from contracts.gang import Gang, Member, NodeToleration
from contracts.ids import NodeName
from contracts.pods.node_features import HOST_USERS
from contracts.workload import Node, NodeTaint
from solver.allocate import allocate
from solver.decision import Decision
from solver.kinds.demand import Demand
from solver.kinds.node_fit import Load, round_to_step, steps_of
from solver.kinds.nodes import find_node_kinds
from tests.builders import devices, gang, member, member_claim, node, pod, pool, request
from tests.builders.problems import PARAMETERS, observe_core, problem_of, snapshot_of

WEST = node("n", labels={"zone": "west", "rank": "5"})
HARD = NodeTaint(key="gpu", value="yes", effect="NoSchedule")


def wanted(*members: Member, number: int = 1, **spec: Any) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    return gang(*members, name=f"g{number}", uid=uid, **spec)


def decided(items: list[Node], *gangs: Gang, each: int = 4, pods: Any = ()) -> Decision:
    pools = {str(i.name): [pool(*devices(each), name=i.name)] for i in items}
    snapshot = observe_core(snapshot_of(pools, gangs), *items, *pods)
    return allocate(problem_of(snapshot))


def one(item: Node, **asked: Any) -> Decision:
    return decided([item], wanted(member(**asked)))


def required(**term: Any) -> dict[str, Any]:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {field: {"nodeSelectorTerms": [term]}}}


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    item = {"key": key, "operator": operator, "values": list(values)}
    return required(matchExpressions=[item])


def named(operator: str, name: str) -> dict[str, Any]:
    item = {"key": "metadata.name", "operator": operator, "values": [name]}
    return required(matchFields=[item])


def rule_of(decision: Decision) -> Rule | None:
    (found,) = decision.gangs
    return found.reasons[0].rule if found.reasons else None


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"node_selector": {"zone": "west"}}, None),
        ({"node_selector": {"zone": "east"}}, Rule.NODE_SELECTION),
        ({"affinity": label("zone", "In", "east", "west")}, None),
        ({"affinity": label("zone", "NotIn", "west")}, Rule.NODE_SELECTION),
        ({"affinity": label("disk", "DoesNotExist")}, None),
        ({"affinity": label("rank", "Gt", "4")}, None),
        ({"affinity": label("rank", "Lt", "5")}, Rule.NODE_SELECTION),
        ({"affinity": named("In", "n")}, None),
        ({"affinity": named("NotIn", "n")}, Rule.NODE_SELECTION),
        ({"affinity": required()}, Rule.NODE_SELECTION),
        ({"node_name": NodeName("n")}, None),
        ({"node_name": NodeName("m")}, Rule.NODE_SELECTION),
    ],
)
def test_a_pod_goes_where_names_and_labels_allow(
    asked: dict[str, Any], refusal: Rule | None
) -> None:
    """NodeName and NodeAffinity: nodeSelector and required terms must both hold."""
    assert rule_of(one(WEST, **asked)) is refusal


@pytest.mark.parametrize(
    ("taint", "toleration", "refusal"),
    [
        (HARD, None, Rule.NODE_TAINTED),
        (HARD, NodeToleration(operator="Exists"), None),
        (HARD, NodeToleration(key="gpu", operator="Exists"), None),
        (HARD, NodeToleration(key="gpu", value="yes"), None),
        (HARD, NodeToleration(key="gpu", value="no"), Rule.NODE_TAINTED),
        (HARD, NodeToleration(key="cpu", operator="Exists"), Rule.NODE_TAINTED),
        (
            HARD,
            NodeToleration(operator="Exists", effect="NoExecute"),
            Rule.NODE_TAINTED,
        ),
        (NodeTaint(key="gpu", effect="NoExecute"), None, Rule.NODE_TAINTED),
        (NodeTaint(key="gpu", effect="PreferNoSchedule"), None, None),
    ],
)
def test_a_pod_stays_away_from_taints_that_it_does_not_tolerate(
    taint: NodeTaint, toleration: NodeToleration | None, refusal: Rule | None
) -> None:
    """TaintToleration: NoSchedule and NoExecute; preferences never."""
    tolerations = () if toleration is None else (toleration,)
    found = one(node("n", taints=(taint,)), tolerations=tolerations)
    assert rule_of(found) is refusal


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    """NodeUnschedulable."""
    cordoned = node("n", unschedulable=True)
    assert rule_of(one(cordoned)) is Rule.NODE_TAINTED
    key = "node.kubernetes.io/unschedulable"
    tolerant = NodeToleration(key=key, effect="NoSchedule")
    assert rule_of(one(cordoned, tolerations=(tolerant,))) is None


def test_a_node_that_is_not_ready_takes_nobody() -> None:
    """Whatever taints a pod tolerates."""
    tolerant = (NodeToleration(operator="Exists"),)
    assert rule_of(one(node("n", ready=False), tolerations=tolerant)) is Rule.NODE


@pytest.mark.parametrize(
    ("name", "has", "asked", "refused"),
    [
        ("cpu", "2", "2", False),
        ("cpu", "2", "2001m", True),
        ("memory", "4Gi", "4Gi", False),
        ("memory", "4Gi", "4097Mi", True),
        ("ephemeral-storage", "10Gi", "11Gi", True),
        ("hugepages-2Mi", "4Mi", "6Mi", True),
        ("example.com/slot", "1", "2", True),
        ("example.com/slot", "2", "2", False),
    ],
)
def test_a_pod_gets_no_more_of_a_resource_than_the_node_has(
    name: str, has: str, asked: str, refused: bool
) -> None:
    """NodeResourcesFit, alone on the node."""
    found = one(node("n", allocatable={name: has, "pods": 9}), resources={name: asked})
    assert (rule_of(found) is Rule.NODE_RESOURCES) is refused
    assert bool(found.gangs[0].members) is not refused


def test_a_resource_that_the_node_does_not_have_is_not_there() -> None:
    """It is none, not any amount."""
    item = node("n", allocatable={"cpu": 2})
    assert rule_of(one(item, resources={"memory": "1"})) is Rule.NODE_RESOURCES


def test_pods_on_a_node_share_what_it_has() -> None:
    """Equal pods add up."""
    item = node("n", allocatable={"cpu": 4, "pods": 10})
    three = wanted(member(count=3, resources={"cpu": "1500m"}))
    assert rule_of(decided([item], three)) is Rule.NODE_RESOURCES
    two = wanted(member(count=2, resources={"cpu": "1500m"}))
    assert rule_of(decided([item], two)) is None


def test_different_pods_on_a_node_share_what_it_has() -> None:
    """Each kind of pod fits by count; the model must add them up."""
    item = node("n", allocatable={"cpu": 4})
    big, small = (
        wanted(member(resources={"cpu": cpu}), number=number)
        for number, cpu in ((1, "3"), (2, "2"))
    )
    found = decided([item], big, small)
    assert [bool(g.members) for g in found.gangs].count(True) == 1
    assert found.gangs[1].members == () or found.gangs[0].members == ()


def test_the_number_of_pods_of_a_node_is_limited() -> None:
    """And the reason names the resource `pods`."""
    item = node("n", allocatable={"pods": 2})
    assert rule_of(decided([item], wanted(member(count=2)))) is None
    found = decided([item], wanted(member(count=3)))
    assert found.gangs[0].reasons[0].field == "node.resources[pods]"


def test_bound_pods_leave_less() -> None:
    """Those that are over leave nothing behind."""
    item = node("n", allocatable={"cpu": 4, "pods": 10})
    other = pod("other", requests={"cpu": "3"}, node_name=NodeName("n"))
    asking = wanted(member(resources={"cpu": 2}))
    assert rule_of(decided([item], asking, pods=[other])) is Rule.NODE_RESOURCES
    over = pod("o", requests={"cpu": 3}, node_name=NodeName("n"), phase="Succeeded")
    assert rule_of(decided([item], asking, pods=[over])) is None


def test_a_pod_that_asks_for_nothing_fits_on_an_overbooked_node() -> None:
    """As kube-scheduler: what is not asked for is not looked at."""
    item = node("n", allocatable={"cpu": 1, "pods": 10})
    other = pod("other", requests={"cpu": "3"}, node_name=NodeName("n"))
    assert rule_of(decided([item], wanted(), pods=[other])) is None


def test_pods_without_claims_are_placed_by_what_nodes_have() -> None:
    """Devices are not all that keeps a pod away."""
    bare = member(count=3, resources={"cpu": 2})
    bare = Member(name=bare.name, count=3, node=bare.node)
    items = [node(name, allocatable={"cpu": 5}) for name in ("a", "b")]
    found = decided(items, wanted(bare))
    assert sorted(pod.node for pod in found.gangs[0].members) == ["a", "a", "b"]
    assert rule_of(decided(items[:1], wanted(bare))) is Rule.NODE_RESOURCES
    cordoned = [node("a", unschedulable=True)]
    assert rule_of(decided(cordoned, wanted(bare))) is Rule.NODE_TAINTED


def test_nodes_of_which_nothing_is_said_have_enough() -> None:
    """Without a Node object nothing limits."""
    snapshot = snapshot_of(
        {"n": [pool(*devices(1), name="n")]}, [wanted(member(resources={"cpu": 99}))]
    )
    assert rule_of(allocate(problem_of(snapshot))) is None


def test_the_reason_names_resource_node_and_numbers() -> None:
    """Of the node that comes closest."""
    items = [
        node("a", allocatable={"cpu": 4, "memory": "64Gi"}),
        node("b", allocatable={"cpu": "6500m", "memory": "64Gi"}),
    ]
    asking = wanted(member(resources={"cpu": 8, "memory": "1Gi"}))
    (reason,) = decided(items, asking).gangs[0].reasons
    assert (reason.rule, reason.subject) == (Rule.NODE_RESOURCES, "worker")
    assert reason.field == "node.resources[cpu]"
    assert "cpu 8 on one node" in reason.message
    assert "b has the most left: cpu 6500m" in reason.message
    assert (reason.facts["asked"], reason.facts["left"]) == (8000, 6500)


def test_the_reason_names_a_taint() -> None:
    """As people write taints."""
    (reason,) = one(node("n", taints=(HARD,))).gangs[0].reasons
    assert "(gpu=yes:NoSchedule on n)" in reason.message


@pytest.mark.parametrize(
    ("node_asks", "field"),
    [
        ({"affinity": label("a", "Near", "x")}, ".operator"),
        ({"affinity": label("a", "Gt", "x")}, ".values[0]"),
        ({"affinity": named("Exists", "x")}, ".operator"),
        ({"affinity": {"nodeAfinity": {}}}, "affinity.nodeAfinity"),
        ({"affinity": {"nodeAffinity": []}}, "affinity.nodeAffinity"),
        ({"resources": {"cpu": -1}}, "resources[cpu]"),
        ({"resources": {"gpus": 1}}, "node.resources"),
        ({"tolerations": (NodeToleration(key="a", operator="Is"),)}, ".operator"),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(
    node_asks: dict[str, Any], field: str
) -> None:
    """A malformed requirement is invalid, never ignored."""
    found = one(node("n"), **node_asks)
    (reason,) = found.gangs[0].reasons
    assert reason.rule is Rule.INVALID
    assert reason.field.startswith("spec.members[0].node.")
    assert field in reason.field


def test_preferences_are_ignored() -> None:
    """Only what is required decides."""
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    assert rule_of(one(node("n"), affinity={"podAffinity": soft})) is None
    assert rule_of(one(node("n"), affinity={"nodeAffinity": soft})) is None


def test_amounts_that_no_answer_depends_on_make_no_kinds() -> None:
    """Nodes that differ only in what is left beyond use are of one kind."""
    cpus = ("64", "63500m", "63", "17", "16500m")
    items = [
        node(f"n{i}", allocatable={"cpu": cpu, "pods": 100 + i})
        for i, cpu in enumerate(cpus)
    ]
    asking = wanted(member(member_claim(request()), resources={"cpu": 4}))
    pools = {str(item.name): [pool(*devices(4), name=item.name)] for item in items}
    problem = problem_of(observe_core(snapshot_of(pools, [asking]), *items))
    (kind,) = find_node_kinds(problem, Demand(problem.gangs).query)
    assert kind.shape.free == (None, None)


@given(
    st.lists(
        st.builds(lambda d, n: Load(d, (n,)), st.integers(0, 3), st.integers(1, 12)),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 60),
    st.none() | st.integers(0, 6),
)
def test_what_is_forgotten_of_an_amount_changes_no_answer(
    loads: list[Load], left: int, have: int | None
) -> None:
    """Any pods that the node has devices for fit before exactly when they fit after."""
    (step,) = steps_of(loads, 1)
    known = round_to_step(left, step, have)
    most = 8
    for counts in _counts(len(loads), most):
        used = sum(n * load.devices for n, load in zip(counts, loads, strict=True))
        if have is not None and used > have:
            continue
        need = sum(n * load.needs[0] for n, load in zip(counts, loads, strict=True))
        assert (need <= left) == (known is None or need <= known)


def _counts(kinds: int, most: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for _ in range(kinds):
        found = [(*start, n) for start in found for n in range(most + 1)]
    return found


def test_the_room_of_a_node_is_what_devices_and_amounts_both_allow() -> None:
    """Two nodes, one short of devices, one short of CPU: room for one pod each."""
    short = node("a", allocatable={"cpu": 3, "pods": 9})
    rich = node("b", allocatable={"cpu": 64, "pods": 9})
    pools = {"a": [pool(*devices(4), name="a")], "b": [pool(*devices(1), name="b")]}
    three = wanted(member(count=3, resources={"cpu": 2}))
    snapshot = observe_core(snapshot_of(pools, [three]), short, rich)
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    assert reason.rule is Rule.NODE_RESOURCES
    assert (reason.facts["nodes"], reason.facts["room"]) == (2, 2)


def test_without_enough_devices_they_are_the_reason_not_the_node() -> None:
    """Devices are looked at first."""
    item = node("n", allocatable={"cpu": 64})
    asking = wanted(member(member_claim(request(count=5)), resources={"cpu": 2}))
    assert rule_of(decided([item], asking)) is Rule.NO_CANDIDATE


@pytest.mark.parametrize("release", ["1.35", "1.37"])
@pytest.mark.parametrize("declared", [False, True])
def test_kubelets_declare_what_pods_need(release: str, declared: bool) -> None:
    """From 1.36 on; the reason names the feature and a node."""
    needy = gang(member(member_claim(request()), features=(HOST_USERS,)))
    snapshot = snapshot_of({"n": [pool(*devices(1), name="n")]}, [needy])
    known = node("n", features=[HOST_USERS] if declared else ["DRAOther"])
    features = features_of(release)
    parameters = structs.replace(PARAMETERS, features=features)
    (answer,) = allocate(problem_of(observe_core(snapshot, known), parameters)).gangs
    if declared or release == "1.35":
        assert answer.members
        return
    (reason,) = answer.reasons
    assert reason.rule is Rule.NODE_FEATURES
    assert reason.message.endswith(f"(without {HOST_USERS} on n)")
