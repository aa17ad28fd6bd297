"""PodGroups of one gang that come after those that it began with."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from contracts.kubernetes.decode import decode_object
from contracts.messages import SubmitGang
from contracts.names import GANG_UID
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import WorkloadAPI
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.completeness import is_left_alone
from publisher.gangs.view import View
from tests.builders.plans import context_of
from tests.cases.group_trees import RACK, composite, leaf, pod_group, pods
from tests.cases.published import Json


def opened(objects: Iterable[Json], node: str = "n") -> list[Json]:
    """Let pods run on a node, behind our gate no more."""
    return [
        each
        if each["kind"] != "Pod"
        else each
        | {
            "metadata": each["metadata"] | {"annotations": {GANG_UID: "uid-of-gang"}},
            "spec": each["spec"] | {"schedulingGates": [], "nodeName": node},
        }
        for each in objects
    ]


def look(*objects: Json) -> PlanContext:
    """Look at the gang `x` of these objects."""
    view = View(frozenset(WorkloadAPI))
    view.apply_node("n", KnownNode(labels={RACK: "r1"}))
    for raw in objects:
        meta = raw["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        if raw["kind"] == "Pod":
            spec = {k: v for k, v in raw["spec"].items() if k != "resourceClaims"}
            named = {"uid": f"uid-{meta['name']}"}
            value = decode_object(raw | {"metadata": meta | named, "spec": spec}).value
            assert isinstance(value, Pod)
            view.apply_pod(key, value)
        elif (owner := read_gang_owner(raw)) is not None:
            view.apply_owner(owner.key, owner)
    (group,) = (group for group in view.groups() if group.name == "x")
    return replace(context_of(view), group=group)


def asked(plan: NextSteps) -> list[dict[str, tuple[int, int]]]:
    """By submission, the members with how many pods and how many are enough."""
    return [
        {
            member.name: (member.count, member.least)
            for member in message.gang.spec.members
        }
        for message in plan.messages
        if isinstance(message, SubmitGang)
    ]


def reasons(plan: NextSteps) -> set[str]:
    return {report.reason for report in plan.reports if report.reason}


def test_what_it_does_not_need_waits_until_it_runs() -> None:
    groups = [*leaf("a", 2, parent="x"), *leaf("b", 1, parent="x")]
    plan = plan_gang(look(composite("x", 1), *groups))
    assert asked(plan) == [{"a": (2, 2)}]
    assert reasons(plan) == {"Growing"}


def test_each_further_group_is_asked_for_by_itself_and_whole() -> None:
    """In the domain of what runs."""
    running = opened(leaf("a", 2, parent="x"))
    late = [*leaf("b", 2, parent="x"), *leaf("c", 3, 2, parent="x")]
    plan = plan_gang(look(composite("x", 1, topology=RACK), *running, *late))
    assert asked(plan) == [{"b": (2, 2)}, {"c": (3, 2)}]
    for message in plan.messages:
        assert isinstance(message, SubmitGang)
        (member,) = message.gang.spec.members
        assert "r1" in str(member.node.affinity)


def test_a_further_group_waits_for_its_last_pod() -> None:
    running = opened(leaf("a", 1, parent="x"))
    late = [pod_group("b", 2, parent="x"), *pods("b", 1)]
    plan = plan_gang(look(composite("x", 1), *running, *late))
    assert asked(plan) == []
    (report,) = [each for each in plan.reports if each.reason]
    assert (report.reason, report.message) == (
        "PodsMissing",
        "1 of 2 pods b are there",
    )


def test_groups_of_a_further_group_wait_for_each_other() -> None:
    running = opened(leaf("a", 1, parent="x"))
    late = [composite("y", 2, parent="x"), *leaf("b", 1, parent="y")]
    root = composite("x", 1)
    assert asked(plan_gang(look(root, *running, *late))) == []
    late += leaf("c", 1, parent="y")
    plan = plan_gang(look(root, *running, *late))
    assert asked(plan) == [{"b": (1, 1), "c": (1, 1)}]


def test_a_lost_pod_is_replaced_at_once() -> None:
    both = [*leaf("a", 2, parent="x"), *leaf("b", 1, parent="x")]
    objects = [*opened(both[:2]), both[2], *opened(both[3:])]
    plan = plan_gang(look(composite("x", 2), *objects))
    assert asked(plan) == [{"a": (1, 1)}]


def test_what_was_to_follow_is_left_alone_if_nothing_runs_any_more() -> None:
    both = [*leaf("a", 2, parent="x"), *leaf("b", 1, parent="x")]
    context = look(composite("x", 2), *both)
    late = [pod for pod in context.pods if pod.metadata.name.startswith("b")]
    assert is_left_alone(late, context, {"b": 1})
    assert not is_left_alone(context.pods, context, {"a": 2, "b": 1})


def test_an_elastic_group_does_not_begin_with_fewer_pods_than_it_needs() -> None:
    context = look(composite("x", 1), *leaf("a", 3, 2, parent="x"))
    assert asked(plan_gang(context)) == [{"a": (3, 2)}]
    assert is_left_alone(context.pods, context, {"a": 1})
    assert not is_left_alone(context.pods, context, {"a": 2})
