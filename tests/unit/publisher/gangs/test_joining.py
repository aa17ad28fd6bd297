"""Rules across pods hold for those that run and those that come, together."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.membership import COMPLETION_INDEX
from contracts.pods.node_affinity import read_required_nodes
from contracts.workload import Pod
from publisher.gangs.joining import POD_INDEX, JoiningPods, split_by_group
from tests.builders import gang_constraint, member, member_claim, topology_rule
from tests.builders.plans import view_of
from tests.builders.pods import waiting_pod

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
    joining = JoiningPods(
        [("worker", pod) for pod in new],
        [(of_old, pod) for pod in old],
        view_of(nodes=NODES),
    )
    found = joining.narrow((member(member_claim()),), rules)
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


def test_a_pod_joins_its_group_by_its_number() -> None:
    """Of a StatefulSet or an Indexed Job, which give it for good."""
    old = [running("n0", 0), running("n2", 2), running("n3", 3)]
    assert terms_of(rules(group_size=2), old, 1) == [("rack", "In", ("r0",))]
    assert terms_of(rules(group_size=2), old[:1], 2, 3) == []
    pod = numbered(waiting_pod("a"), 1, COMPLETION_INDEX)
    joining = JoiningPods([("worker", pod)], [("worker", old[0])], view_of(nodes=NODES))
    (found,) = joining.narrow((member(),), rules(group_size=2)) or ()  # type: ignore[misc]  # members
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
    parts = split_by_group(pods, [rule], view_of())
    assert parts == [pods[:2], pods[2:3], pods[3:]]
    assert split_by_group(pods, [topology_rule("rack")], view_of()) == [pods]
    unnumbered = [waiting_pod("a"), waiting_pod("b")]
    assert split_by_group(unnumbered, [rule], view_of()) == [unnumbered]


def first_of(
    asked: DeclaredRules, new: list[Pod], before: list[Pod], old: list[Pod]
) -> tuple[str, str] | None:
    """Say which pod workers wait for, and by which rule."""
    new_, old_, before_ = (
        [("worker", pod) for pod in pods] for pods in (new, old, before)
    )
    found = JoiningPods(new_, old_, view_of(nodes=NODES), before_).find_first(asked)
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
