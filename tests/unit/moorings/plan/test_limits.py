"""What limits a plan: gates, labels of namespaces, Nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.ids import GangUID, Namespace
from contracts.kubernetes.decode import decode_object
from contracts.pod_terms import HostPort
from contracts.pods.pod_rules import PodRules
from moorings.errors import UsageError
from moorings.plan.limits import (
    ADMIN_ACCESS,
    drop_node_needs,
    parse_gates,
    read_features,
    refuse_admin_access,
)
from moorings.plan.objects import PlanObject
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)
from tests.builders import topology_rule


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
    with pytest.raises(UsageError, match=r"1\.2"):
        read_features("1.2", {})


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
