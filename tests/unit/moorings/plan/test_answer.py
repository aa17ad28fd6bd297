"""A plan answers every claim in its order, the service's way, within limits."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.codec import to_builtins
from contracts.ids import GangUID, Namespace
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from contracts.pod_terms import HostPort
from contracts.pods.pod_rules import PodRules
from moorings.errors import UsageError
from moorings.plan.answer import SolvedWork, _find_error_scope, make_plan
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.limits import (
    ADMIN_ACCESS,
    drop_node_needs,
    parse_gates,
    read_features,
    refuse_admin_access,
)
from moorings.plan.objects import PlanObject
from moorings.plan.plan import Plan
from moorings.plan.work import prepare_work
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)
from tests import builders
from tests.builders import topology_rule
from tests.builders.problems import PlainEvaluator, problem_of

WORLD: tuple[WritableObject, ...] = (
    builders.device_class(builders.DEVICE_CLASS, "true"),
    builders.resource_slice(*builders.devices(2)),
)


def answer(*values: WritableObject) -> Plan:
    """Decide these objects beside two devices, and write the answer down."""
    entries = []
    for value in (*WORLD, *values):
        raw = to_builtins(to_kubernetes(value))
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    work = prepare_work(entries)
    problem = problem_of(work.snapshot)
    decision = allocate(problem)
    solved = SolvedWork(work=work, problem=problem, decision=decision)
    return make_plan([solved], evaluations=5, seconds=(0.1, 0.2))


def test_claims_come_in_the_order_of_the_input() -> None:
    """With their own names, and the node of their devices."""
    names = ("b", "a")
    plan = answer(*(builders.claim(name=name, uid=f"u-{name}") for name in names))
    assert [(claim.name, claim.uid) for claim in plan.claims] == [
        ("b", "u-b"),
        ("a", "u-a"),
    ]
    assert {claim.verdict for claim in plan.claims} == {"allocated"}
    assert {claim.node for claim in plan.claims} == {builders.NODE}


def test_a_claim_that_gets_nothing_says_why() -> None:
    """It has no node and no allocation."""
    (claim,) = answer(builders.claim(builders.request(count=3))).claims
    assert claim.verdict != "allocated"
    assert (claim.node, claim.allocation) == (None, None)
    assert claim.reasons


def test_a_gang_that_gets_nothing_names_each_of_its_claims() -> None:
    """By gang, member, index and claim, as they would be made."""
    plan = answer(builders.gang(builders.member(count=3)))
    assert [claim.name for claim in plan.claims] == [
        f"train-worker-{index}-gpus" for index in range(3)
    ]
    (gang,) = plan.gangs
    assert (gang.name, gang.members) == ("train", ())


def test_statistics_are_of_the_input() -> None:
    """Devices and nodes that are there, whoever gets them."""
    stats = answer(builders.claim()).stats
    assert stats is not None
    assert (stats.devices, stats.nodes) == (2, 1)
    assert (stats.selector_evaluations, stats.total_seconds) == (5, 0.2)


def test_an_error_reaches_as_far_as_it_says() -> None:
    """An attempt that was broken off says nothing of node or cluster."""
    scopes = [
        _find_error_scope(Reason(rule=Rule.WITHDRAWN, facts=facts))
        for facts in ({}, {"nodeOnly": 1}, {"aborted": 1, "nodeOnly": 1})
    ]
    assert scopes == ["cluster", "node", "aborted"]


def make_planner() -> Planner:
    """Make a planner without a sandbox."""
    return Planner(cast("SelectorEvaluator", PlainEvaluator()))


def plan(*values: WritableObject, planner: Planner | None = None, **how: Any) -> Plan:
    """Plan these objects beside two devices of one class."""
    entries = []
    for value in (*WORLD, *values):
        raw = to_builtins(to_kubernetes(value))
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    return (planner or make_planner()).plan(entries, PlanOptions(**how))


def test_both_orders_allocate_what_can_be_had() -> None:
    """And name the node of the devices."""
    for order in ("optimal", "upstream"):
        (claim,) = plan(builders.claim(builders.request(count=2)), order=order).claims
        assert (claim.verdict, claim.node) == ("allocated", builders.NODE)


def test_verdicts_are_kept_from_plan_to_plan() -> None:
    """Each plan counts the evaluations that it caused."""
    planner = make_planner()
    first = plan(builders.claim(), planner=planner)
    second = plan(builders.claim(), planner=planner)
    assert first.stats is not None
    assert second.stats is not None
    assert first.stats.selector_evaluations > 0
    assert second.stats.selector_evaluations == 0
    assert second.problem_hash == first.problem_hash


def test_a_plan_that_runs_out_of_time_says_so() -> None:
    """Of the order that has a limit in seconds."""
    (claim,) = plan(builders.claim(), order="upstream", timeout_seconds=-1.0).claims
    assert (claim.verdict, claim.error_scope) == ("error", "aborted")


def test_both_orders_fill_in_what_is_not_said() -> None:
    """As the API server does, unless objects are taken as they are stored."""
    plain = builders.claim(builders.request(mode="", count=0))
    for order in ("optimal", "upstream"):
        (claim,) = plan(plain, order=order).claims
        assert claim.verdict == "allocated"
    (claim,) = plan(plain, order="upstream", as_stored=True).claims
    assert "unsupported count mode" in str(claim.error)


def test_a_claim_by_itself_is_told_its_own_fields() -> None:
    """It is in no Gang that its author wrote."""
    (claim,) = plan(builders.claim(builders.request(count=-1))).claims
    assert [reason.field for reason in claim.reasons] == [
        "spec.devices.requests[0].exactly.count"
    ]


def gang(*, admin_access: bool = False, **member: Any) -> GangPart:
    subrequest = SubrequestPart(selectors=(), admin_access=admin_access)
    request = RequestPart(name="gpu", alternatives=(subrequest,))
    claim = ClaimPart(name="gpus", requests=(request,))
    return GangPart(
        uid=GangUID("u"),
        name="train",
        namespace=Namespace("default"),
        members=(MemberPart(name="worker", claims=(claim,), **member),),
    )


def entry(kind: str, **metadata: Any) -> PlanObject:
    raw: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    return PlanObject.of("x", raw, decode_object(raw))


def test_gates_are_words_of_the_command_line() -> None:
    assert parse_gates("A=true, B=false") == {"A": True, "B": False}
    assert parse_gates("") == {}


@pytest.mark.parametrize("text", ["A", "A=maybe"])
def test_other_gates_are_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="--feature-gates"):
        parse_gates(text)


def test_unknown_releases_are_wrong_usage() -> None:
    with pytest.raises(UsageError, match="'newest' is no version of Kubernetes"):
        read_features("newest", {})


def test_the_first_refusal_stays() -> None:
    first = Reason(rule=Rule.INVALID, message="first")
    refused = structs.replace(gang(admin_access=True), refused=(first,))
    namespace = entry("Namespace", name="default")
    assert refuse_admin_access([refused], [namespace]) == (refused,)


def test_without_nodes_nothing_is_asked_of_them() -> None:
    needy = gang(node_selector={"zone": "west"})
    (free,) = drop_node_needs([needy], [])
    assert free.members[0].node_selector == {}
    rules = PodRules(ports=(HostPort(port=80),))
    bound = gang(labels={"app": "a"}, varying_labels=("b",), pod_rules=rules)
    assert drop_node_needs([bound], []) == (gang(),)
    assert drop_node_needs([needy], [entry("Node", name="n")]) == (needy,)


def test_without_nodes_no_label_of_theirs_is_a_domain() -> None:
    """Domains that devices tell are as they are."""
    of_devices = topology_rule("attribute:a.io/clique")
    ruled = structs.replace(gang(), topology=(topology_rule("rack"), of_devices))
    (kept,) = drop_node_needs([ruled], [])
    assert kept.topology == (of_devices,)


@pytest.mark.parametrize(
    ("labels", "is_refused"),
    [({}, True), ({ADMIN_ACCESS: "false"}, True), ({ADMIN_ACCESS: "true"}, False)],
)
def test_admin_access_needs_the_label_of_its_namespace(
    labels: dict[str, str], is_refused: bool
) -> None:
    """Source: KEP-5018."""
    namespace = entry("Namespace", name="default", labels=labels)
    (admin,) = refuse_admin_access([gang(admin_access=True)], [namespace])
    assert admin.rejected is is_refused
    assert refuse_admin_access([gang()], [namespace]) == (gang(),)


def test_a_namespace_that_nobody_describes_refuses_nobody() -> None:
    other = entry("Namespace", name="other")
    admin = gang(admin_access=True)
    assert refuse_admin_access([admin], [other]) == (admin,)
