"""Which PodGroups are one gang, in whatever order they become known."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from contracts.gang_rules import MAX_TOPOLOGY
from contracts.kubernetes.decode import decode_object
from contracts.messages import SubmitGang
from contracts.names import GATE
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import COMPOSITE, POD_GROUP, OwnerKey, WorkloadAPI
from contracts.workload import Pod
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.view import GroupKey, View
from tests.builders.plans import context_of
from tests.cases.group_trees import TREES, Tree, composite, leaf, list_by_name, pods
from tests.cases.published import Json

EVERY = frozenset(WorkloadAPI)
ON_A_CLUSTER = [name for name in TREES if "before its PodGroup" not in name]


def put(view: View, raw: Json, *, gone: bool = False) -> frozenset[GroupKey]:
    """Take in an object; or that it is gone."""
    meta = raw["metadata"]
    if raw["kind"] == "Pod":
        uid = f"uid-{meta['name']}"
        spec = {k: v for k, v in raw["spec"].items() if k != "resourceClaims"}
        named = raw | {"metadata": meta | {"uid": uid}, "spec": spec}
        value = decode_object(named).value
        assert isinstance(value, Pod)
        pod = None if gone else value
        return view.apply_pod(f"{meta['namespace']}/{meta['name']}", pod, uid)
    owner = read_gang_owner(raw)
    assert owner is not None
    return view.apply_owner(owner.key, None if gone else owner)


def submitted(view: View) -> list[SubmitGang]:
    """Plan once for every group."""
    found = []
    for group in sorted(view.groups()):
        plan = plan_gang(replace(context_of(view), group=group))
        found += [each for each in plan.messages if isinstance(each, SubmitGang)]
    return found


def shuffled(objects: Sequence[Json], seed: int) -> list[Json]:
    return random.Random(seed).sample(objects, len(objects))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ON_A_CLUSTER)
def test_the_order_in_which_objects_come_makes_no_difference(
    name: str, seed: int
) -> None:
    tree = TREES[name]
    view = View(EVERY)
    for each in shuffled(tree.objects, seed):
        put(view, each)
    assert list_by_name(message.gang for message in submitted(view)) == tree.gangs


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_asked_for_before_the_last_object_is_there(seed: int) -> None:
    view, touched = View(EVERY), frozenset[GroupKey]()
    for each in shuffled(TREES["topology by level"].objects, seed):
        assert not submitted(view)
        touched = put(view, each)
    assert [message.gang.metadata.name for message in submitted(view)] == ["x"]
    assert GroupKey("default", "x", api=COMPOSITE) in touched


def test_pods_are_looked_at_again_when_their_gang_changes() -> None:
    """Both groups: that which they were of, and that which they are of now."""
    view = View(EVERY)
    root, *others = TREES["all groups are needed"].objects
    alone = GroupKey("default", "prefill", api=POD_GROUP)
    joined = GroupKey("default", "x", api=COMPOSITE)
    group, *rest = others
    for each in rest:
        put(view, each)
    assert alone in set(view.groups())
    assert put(view, group) == {joined}
    assert alone not in set(view.groups())
    assert put(view, root) == {joined}


def test_pods_stay_with_their_gang_when_a_group_is_deleted() -> None:
    view = View(EVERY)
    tree = TREES["groups of which each is decided by itself"]
    for each in tree.objects:
        put(view, each)
    before = set(view.groups())
    put(view, tree.objects[0], gone=True)
    assert set(view.groups()) == before
    assert not submitted(view)


def test_pods_without_a_gate_count_in_a_tree() -> None:
    """A group that asks for no device has none; it is of the gang all the same."""
    view = View(EVERY)
    for each in (composite("x", 2), *leaf("w", 2, parent="x")):
        put(view, each)
    assert not submitted(view)
    for each in _without_gate(leaf("driver", 1, parent="x")):
        put(view, each)
    (message,) = submitted(view)
    assert [member.name for member in message.gang.spec.members] == ["w"]


def _without_gate(objects: Iterable[Json]) -> list[Json]:
    return [
        each | {"spec": each["spec"] | {"schedulingGates": []}}
        if each["kind"] == "Pod"
        else each
        for each in objects
    ]


def test_a_stray_is_told_to_the_gang_that_it_is_of() -> None:
    """A pod with a gate that is nearly ours."""
    view = View(EVERY)
    (pod,) = pods("a", 1)
    gates = [{"name": GATE.replace("moorings", "mooring")}]
    put(view, pod | {"spec": pod["spec"] | {"schedulingGates": gates}})
    for each in leaf("a", 1, parent="x")[:1]:
        put(view, each)
    joined = GroupKey("default", "x", api=COMPOSITE)
    assert [each.metadata.name for each in view.strays.of(joined)] == ["a-0"]


def test_what_has_a_parent_waits_where_groups_are_not_joined() -> None:
    view = View(EVERY - {WorkloadAPI.COMPOSITE_POD_GROUP})
    for each in TREES["all groups are needed"].objects:
        put(view, each)
    assert not submitted(view)
    found = view.owners.trees.gang_of(OwnerKey(POD_GROUP, "default", "prefill"))
    assert found is not None
    assert found.not_modelled == "PodGroup prefill: spec.parentCompositePodGroupName"


def test_a_gang_has_no_more_rules_than_one_may_have() -> None:
    """Those about one group each are one rule, of the pods of each group."""
    count = MAX_TOPOLOGY + 1
    groups = [leaf(f"r-{n}", 2, parent="x", topology="rack") for n in range(count)]
    objects = [composite("x", count, topology="block"), *(o for g in groups for o in g)]
    view = View(EVERY)
    for each in objects:
        put(view, each)
    (message,) = submitted(view)
    block, rack = message.gang.spec.topology
    assert (block.key, block.members, block.group_size) == ("block", (), None)
    assert rack.members == tuple(f"r-{n}" for n in range(count))
    assert isinstance(rack.group_size, int)
    assert rack.group_size >= 2


def test_too_many_rules_are_named() -> None:
    tree = Tree(objects=[composite("x", 1)])
    for number in range(MAX_TOPOLOGY + 1):
        tree.objects += [
            composite(f"y-{number}", 1, parent="x", topology="rack"),
            *leaf(f"a-{number}", 1, parent=f"y-{number}"),
            *leaf(f"b-{number}", 1, parent=f"y-{number}"),
        ]
    view = View(EVERY)
    for each in tree.objects:
        put(view, each)
    assert not submitted(view)
    found = view.owners.trees.gang_of(OwnerKey(COMPOSITE, "default", "x"))
    assert found is not None
    assert f"more than {MAX_TOPOLOGY} of" in found.not_modelled
