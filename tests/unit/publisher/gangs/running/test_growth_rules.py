"""Pods that come are asked for beside those that run, by rules over both."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.claim import DerivedAttribute, ResourceClaim
from contracts.joined import JoinedGang
from contracts.messages import SubmitGang
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.membership import COMPLETION_INDEX
from contracts.pods.node_affinity import read_required_nodes
from contracts.workload import Pod
from publisher.gangs.running import growth_rules
from publisher.gangs.running.growth_rules import (
    POD_INDEX,
    DeviceRules,
    NodeRules,
    find_gone_pod,
)
from publisher.gangs.submit.split import split_pods_by_group
from tests import builders
from tests.builders import gang_constraint, member, member_claim, topology_rule
from tests.builders.plans import context_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

NODES = {f"n{n}": {"rack": f"r{n // 2}"} for n in range(6)} | {"bare": {}}
"""Two nodes in each of three racks, and one in none."""


def running(node: str, index: int | None = None) -> Pod:
    return numbered(waiting_pod(f"on-{node}-{index}", node=node, opened_by="u"), index)


def numbered(pod: Pod, index: int | None, label: str = POD_INDEX) -> Pod:
    if index is not None:
        pod.metadata.labels[label] = str(index)
    return pod


def terms_of(
    rules: DeclaredRules, old: list[Pod], *indexes: int | None, of_old: str = "worker"
) -> list[tuple[str, str, tuple[str, ...]]] | Reason:
    """Say what is asked of the nodes of new workers beside those that run."""
    new = [numbered(waiting_pod(f"new-{i}"), i) for i in indexes or (None,)]
    growth = NodeRules(
        [("worker", pod) for pod in new],
        [(of_old, pod) for pod in old],
        view_of(nodes=NODES),
    )
    found = growth.narrow_members((member(member_claim()),), rules)
    if isinstance(found, Reason):
        return found
    selector = read_required_nodes(found[0].node.affinity)
    if selector is None:
        return []
    (term,) = selector.node_selector_terms
    return [(one.key, one.operator, one.values) for one in term.match_expressions]


def rules(**rule: Any) -> DeclaredRules:
    return DeclaredRules(topology=(topology_rule("rack", **rule),))


def test_a_new_pod_goes_where_the_others_are() -> None:
    old = [running("n2"), running("n3")]
    assert terms_of(rules(), old) == [("rack", "In", ("r1",))]


def test_a_pod_on_a_node_that_is_gone_is_in_no_domain() -> None:
    """It is lost: who replaces it goes where the others are, if there are any."""
    lost = running("gone")
    assert terms_of(rules(), [lost, running("n2")]) == [("rack", "In", ("r1",))]
    assert terms_of(rules(max_per_domain=1), [lost]) == []
    assert terms_of(rules(), [lost]) == []


def test_what_is_about_others_or_only_preferred_asks_nothing() -> None:
    old = [running("n2")]
    assert terms_of(rules(mode="Preferred"), old) == []
    assert terms_of(rules(), old, of_old="driver") == [("rack", "In", ("r1",))]
    others = DeclaredRules(topology=(topology_rule("rack", "driver"),))
    assert terms_of(others, old, of_old="driver") == []
    assert terms_of(rules(), [running("bare")]) == []


def test_domains_that_are_full_are_left_out() -> None:
    """Also those that would be, were all that come to go there."""
    old = [running("n0"), running("n2"), running("n3")]
    assert terms_of(rules(max_per_domain=1), old) == [("rack", "NotIn", ("r0", "r1"))]
    assert terms_of(rules(max_per_domain=2), old) == [("rack", "NotIn", ("r1",))]
    both = terms_of(rules(max_per_domain=2), old, 0, 1)
    assert both == [("rack", "NotIn", ("r0", "r1"))]
    assert terms_of(rules(max_per_domain=3), old) == []


def test_a_pod_goes_where_fewest_are_if_parts_are_even() -> None:
    """One alone, since only then none gets more than the others."""
    even = rules(group_size="Even")
    old = [running("n0"), running("n1"), running("n2")]
    assert terms_of(even, old) == [("rack", "In", ("r1",))]
    assert terms_of(even, old[1:]) == [("rack", "In", ("r0", "r1"))]
    assert terms_of(even, old[:2], 2, 3) == [("rack", "In", ("r0",))]
    assert terms_of(even, old, of_old="driver") == []
    told = terms_of(even, old, 3, 4)
    assert isinstance(told, Reason)
    assert (told.rule, told.field) == (Rule.NOT_MODELLED, "spec.topology[0].groupSize")


def test_a_pod_joins_its_group_by_its_number() -> None:
    """Of a StatefulSet or an Indexed Job, which give it for good."""
    old = [running("n0", 0), running("n2", 2), running("n3", 3)]
    assert terms_of(rules(group_size=2), old, 1) == [("rack", "In", ("r0",))]
    assert terms_of(rules(group_size=2), old[:1], 2, 3) == []
    pod = numbered(waiting_pod("a"), 1, COMPLETION_INDEX)
    growth = NodeRules([("worker", pod)], [("worker", old[0])], view_of(nodes=NODES))
    (found,) = growth.narrow_members((member(),), rules(group_size=2)) or ()  # type: ignore[misc]  # members
    assert "r0" in str(found.node.affinity)


@pytest.mark.parametrize(
    ("asked", "indexes", "field"),
    [
        (rules(group_size=2), (None,), "spec.topology[0].groupSize"),
        (rules(group_size=2), (1, 2), "spec.topology[0].groupSize"),
    ],
)
def test_what_nodes_cannot_be_asked_is_never_broken(
    asked: DeclaredRules, indexes: tuple[int | None, ...], field: str
) -> None:
    """The pods wait, and are told which rule they wait for."""
    told = terms_of(asked, [running("n0", 0), running("n2", 3)], *indexes)
    assert isinstance(told, Reason)
    assert (told.rule, told.field) == (Rule.NOT_MODELLED, field)


def test_pods_of_several_groups_are_asked_for_apart() -> None:
    """Each then joins its own; without groups all stay together."""
    pods = [numbered(waiting_pod(f"w-{n}"), n) for n in (0, 1, 2, 5)]
    rule = topology_rule("rack", group_size=2)
    parts = split_pods_by_group(pods, [rule], context_of(view_of()))
    assert parts == [pods[:2], pods[2:3], pods[3:]]
    assert split_pods_by_group(
        pods, [topology_rule("rack")], context_of(view_of())
    ) == [pods]
    even = [topology_rule("rack", group_size="Even")]
    apart = split_pods_by_group(pods, even, context_of(view_of()))
    assert apart == [[pod] for pod in pods]
    unnumbered = [waiting_pod("a"), waiting_pod("b")]
    assert split_pods_by_group(unnumbered, [rule], context_of(view_of())) == [
        unnumbered
    ]


def first_of(
    asked: DeclaredRules, new: list[Pod], before: list[Pod], old: list[Pod]
) -> tuple[str, str] | None:
    """Say which pod workers wait for, and by which rule."""
    new_, old_, before_ = (
        [("worker", pod) for pod in pods] for pods in (new, old, before)
    )
    found = NodeRules(new_, old_, view_of(nodes=NODES), before_).find_earlier_pod(asked)
    return found and (found[0].metadata.name, found[1])


def test_what_runs_is_counted_so_others_that_join_go_first() -> None:
    """But not where a rule names a domain that both join, or is not about both."""
    new, before = [numbered(waiting_pod("b"), 3)], [numbered(waiting_pod("a"), 2)]
    old = [running("n0", 0)]
    field = "spec.topology[0]"
    assert first_of(rules(max_per_domain=1), new, before, old) == ("a", field)
    assert first_of(rules(max_per_domain=1), new, [], old) is None
    assert first_of(rules(), new, before, old) is None
    assert first_of(rules(), new, before, []) == ("a", field)
    assert first_of(rules(mode="Preferred"), new, before, []) is None
    assert first_of(rules(group_size=2), new, before, old) == ("a", field)
    assert first_of(rules(group_size=3), new, before, old) is None
    beside = [running("n2", 2)]
    assert first_of(rules(group_size=2), new, before, beside) is None
    between = DeclaredRules(constraints=(gang_constraint("a.io/x"),))
    assert first_of(between, new, before, []) == ("a", "spec.constraints[0]")
    of_pod = DeclaredRules(constraints=(gang_constraint("a.io/x", scope="Pod"),))
    assert first_of(of_pod, new, before, []) is None


NEW = (member(member_claim(name="nic")),)
MATCH = gang_constraint("a.io/rail", "worker/nic")
COMES = waiting_pod("c", templates=["nic"])
ATTRIBUTE = topology_rule("attribute:a.io/rail")


def runs(name: str, node: str = "n0", claims: tuple[str, ...] = ("nic", "gpu")) -> Pod:
    return waiting_pod(name, templates=claims, node=node, opened_by="u")


def claim(name: str, *devices: str, **fields: Any) -> ResourceClaim:
    results = [builders.result(device, request="r") for device in devices]
    allocated = builders.allocation(*results) if devices else None
    return real_claim(name, allocated=allocated, **fields)


HELD = [claim("a-nic", "nic-1"), claim("a-gpu", "gpu-1")]


def device_rules(
    *running: tuple[str, Pod],
    claims: list[ResourceClaim] | None = None,
    new: Pod = COMES,
    **rules: Any,
) -> DeviceRules:
    """Describe what runs to a new worker."""
    held = HELD if claims is None else claims
    view = view_of([pod for _, pod in running], held, nodes=["n0", "n1"])
    return DeviceRules([("worker", new)], running, NEW, DeclaredRules(**rules), view)


def told(*running: tuple[str, Pod], **more: Any) -> list[tuple[str, str, list[str]]]:
    """Say what is told: (member, node, devices) of each pod."""
    found = device_rules(*running, **more).describe_running("f")
    assert isinstance(found, JoinedGang), found
    return [
        (pod.member, pod.node, [held.device.device for held in pod.devices])
        for pod in found.pods
    ]


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"constraints": (MATCH,)}, "spec.constraints[0]"),
        ({"constraints": (gang_constraint("a.io/x"),)}, "spec.constraints[0]"),
        ({"topology": (ATTRIBUTE,)}, "spec.topology[0]"),
        ({"constraints": (gang_constraint("a.io/x", scope="Pod"),)}, ""),
        ({"constraints": (gang_constraint("a.io/x", "driver"),)}, ""),
        ({"topology": (topology_rule("rack"),)}, ""),
        ({"topology": (replace(ATTRIBUTE, mode="Preferred"),)}, ""),
        ({"topology": (topology_rule(ATTRIBUTE.key, "driver"),)}, ""),
    ],
)
def test_the_solver_keeps_rules_about_devices_of_both(
    rules: dict[str, Any], field: str
) -> None:
    """Others are about nodes, about one pod, or about nobody that is asked for."""
    assert device_rules(("worker", runs("a")), **rules).find_rule() == field


def test_devices_that_rules_look_at_are_told() -> None:
    worker = ("worker", runs("a"))
    assert told(worker, constraints=(MATCH,)) == [("worker", "n0", ["nic-1"])]
    for rules in (
        {"constraints": (gang_constraint("a.io/x"),)},
        {"constraints": (gang_constraint("a.io/x", "worker"),)},
        {"topology": (ATTRIBUTE,)},
    ):
        assert told(worker, **rules) == [("worker", "n0", ["gpu-1", "nic-1"])]


def test_rules_name_members_that_only_run() -> None:
    """But none of which no pod does."""
    both = gang_constraint("a.io/rail", "worker/nic", "driver/nic", "gone/nic")
    rule = topology_rule("rack", "driver", "worker", "gone")
    found = device_rules(("driver", runs("a")), constraints=(both,), topology=(rule,))
    assert found.find_rule() == "spec.constraints[0]"
    said = found.describe_running("f")
    assert isinstance(said, JoinedGang)
    assert said.constraints[0].requests == ("worker/nic", "driver/nic")
    assert said.topology[0].members == ("driver", "worker")
    assert [(pod.name, pod.uid) for pod in said.pods] == [("a", "uid-a")]


def test_a_pod_whose_node_is_gone_is_lost() -> None:
    """Its devices hold nobody back, as its labels do not."""
    lost = ("worker", runs("b", "gone"))
    assert device_rules(lost, constraints=(MATCH,)).find_rule() == ""
    both = told(("worker", runs("a")), lost, constraints=(MATCH,))
    assert both == [("worker", "n0", ["nic-1"])]


def test_a_claim_that_pods_share_is_told_once_of_each_member() -> None:
    """A set of a member has its device, whoever else shares it."""
    pods = [
        (of, waiting_pod(name, shared={"nic": "pair"}, node="n0", opened_by="u"))
        for of, name in (("worker", "a"), ("worker", "b"), ("driver", "d"))
    ]
    rule = gang_constraint("a.io/rail", "worker/nic", "driver/nic", scope="Member")
    found = told(*pods, claims=[claim("pair", "nic-1")], constraints=(rule,))
    assert [(member, devices) for member, _, devices in found] == [
        ("worker", ["nic-1"]),
        ("worker", []),
        ("driver", ["nic-1"]),
    ]


def deriving(name: str, *devices: str) -> ResourceClaim:
    rail = DerivedAttribute(name="a.io/rail", expression="device.driver")
    asked = builders.request("r", derived_attributes=(rail,))
    return claim(name, *devices, spec=builders.claim_spec(asked))


@pytest.mark.parametrize(
    ("claims", "rules", "field", "words"),
    [
        ([], {}, "f", "its claim nic holds nothing"),
        ([claim("a-nic")], {}, "f", "its claim nic holds nothing"),
        ([deriving("a-nic", "nic-1")], {}, "f", "derives attributes"),
        (
            HELD,
            {"topology": (topology_rule("rack", group_size=2),)},
            "spec.topology[0].groupSize",
            "cannot be decided yet",
        ),
    ],
)
def test_what_cannot_be_told_is_waited_for(
    claims: list[ResourceClaim], rules: dict[str, Any], field: str, words: str
) -> None:
    """With the field: no rule is broken for it."""
    pods = device_rules(
        ("worker", runs("a")), claims=claims, constraints=(MATCH,), **rules
    )
    reason = pods.describe_running("f")
    assert not isinstance(reason, JoinedGang)
    assert (reason.rule, reason.field) == (Rule.NOT_MODELLED, field)
    assert words in reason.message


@pytest.mark.parametrize(
    ("shared", "scopes", "told_of"),
    [("pair", ["Gang"], ""), ("pair", ["Gang", "Pod"], "c"), ("other", ["Gang"], "c")],
)
def test_what_a_new_pod_has_already_is_in_the_set_or_it_waits(
    shared: str, scopes: list[str], told_of: str
) -> None:
    """A claim that it shares with a pod that runs is compared; no other would be."""
    old = waiting_pod("a", shared={"pair": "pair"}, node="n0", opened_by="u")
    new = waiting_pod("c", templates=["nic"], shared={"pair": shared})
    rules = tuple(gang_constraint("a.io/rail", scope=scope) for scope in scopes)
    claims = [claim("pair", "nic-1"), claim("other", "nic-2")]
    found = device_rules(("worker", old), claims=claims, new=new, constraints=rules)
    said = found.describe_running("f")
    assert ("" if isinstance(said, JoinedGang) else said.subject) == told_of


@pytest.mark.parametrize("limit", ["MAX_JOINED_DEVICES", "_MOST_BYTES"])
def test_too_many_are_not_told(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(growth_rules, limit, 0)
    reason = device_rules(("worker", runs("a")), constraints=(MATCH,)).describe_running(
        "f"
    )
    assert not isinstance(reason, JoinedGang)
    assert "1 pod with 1 device: too many run" in reason.message


def test_who_is_over_is_joined_no_more() -> None:
    """What was left to the new pods may be more then: they are asked for anew."""
    pod = runs("a")
    said = device_rules(("worker", pod), constraints=(MATCH,)).describe_running("f")
    assert isinstance(said, JoinedGang)
    message: SubmitGang = replace(submission_of(count=1), joins=said)
    assert find_gone_pod(message, [pod]) == ""
    assert find_gone_pod(replace(message, joins=None), []) == ""
    for left in ([], [waiting_pod("a", uid="another")], [runs_no_more("a")]):
        assert find_gone_pod(message, left) == "pod a, which these would join, is gone"


def runs_no_more(name: str) -> Pod:
    return waiting_pod(name, node="n0", opened_by="u", phase="Failed")
