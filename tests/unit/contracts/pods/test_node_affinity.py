"""What binds a pod to nodes: its affinity, and where its volumes can be had."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.codec import convert, to_builtins
from contracts.device import NodeSelector
from contracts.errors import DecodeError
from contracts.labels import LabelSelector
from contracts.meta import ObjectMeta
from contracts.pods.node_affinity import (
    NODE_AFFINITY,
    REQUIRED,
    find_unreadable_numbers,
    list_required_pods,
    read_pinned_node,
    read_required_nodes,
)
from contracts.pods.volumes import (
    SELECTED_NODE,
    MissingVolume,
    find_volume_nodes,
    list_volume_claims,
)
from contracts.storage import (
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    StorageClass,
)
from contracts.workload import PodSpec, PodVolume
from publisher.gangs.volumes import Volumes
from tests.builders.storage import ZONE, storage_class, volume, volume_claim, volume_of
from tests.builders.values import NAMESPACE


def required(*terms: Any) -> dict[str, Any]:
    """Make an affinity that requires nodes of these terms."""
    return {NODE_AFFINITY: {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    """Make a term of nodes by their names."""
    field = {"key": "metadata.name", "operator": operator, "values": list(names)}
    return {"matchFields": [field]}


@pytest.mark.parametrize(
    ("affinity", "node"),
    [
        ({}, None),
        (required(named("a")), "a"),
        (required(named("a"), named("a")), "a"),
        (required(named("a"), named("b")), None),
        (required(named("a"), {}), None),
        (required(named("a", "b")), None),
        (required(named("a", operator="NotIn")), None),
    ],
)
def test_a_pod_is_pinned_by_the_one_node_that_every_term_names(
    affinity: dict[str, Any], node: str | None
) -> None:
    """Terms are alternatives, so one that names no node or another unpins it."""
    assert read_pinned_node(affinity) == node


def test_preferences_require_nothing() -> None:
    """Only what is required keeps a pod from a node."""
    preferred: dict[str, Any] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{}]
    }
    assert read_required_nodes({NODE_AFFINITY: preferred}) is None
    assert list_required_pods({"podAffinity": preferred}) == ()


def test_pods_that_must_be_near_or_far_are_named() -> None:
    """What only other pods can decide is shown by the field."""
    affinity = {"podAffinity": {REQUIRED: []}, "podAntiAffinity": {REQUIRED: [{}]}}
    assert list_required_pods(affinity) == (f"podAntiAffinity.{REQUIRED}",)


@pytest.mark.parametrize(
    ("affinity", "field"),
    [
        ({"nodes": {}}, "nodes"),
        ({NODE_AFFINITY: 1}, NODE_AFFINITY),
        ({NODE_AFFINITY: {REQUIRED: []}}, f"{NODE_AFFINITY}.{REQUIRED}"),
        (required({"matchLabels": {}}), "matchLabels"),
        (required(7), "nodeSelectorTerms[0]"),
    ],
)
def test_a_malformed_affinity_is_refused_by_its_field(
    affinity: dict[str, Any], field: str
) -> None:
    """Nothing that cannot be read is taken for a preference."""
    with pytest.raises(DecodeError) as raised:
        read_required_nodes(affinity)
    assert raised.value.field.endswith(field)


def test_numbers_that_are_none_are_named_by_path() -> None:
    """`Gt` and `Lt` compare 64-bit integers; `In` compares texts."""
    numbers = ("7", "x", str(2**63), "-1")
    terms = [
        {"matchExpressions": [{"key": "k", "operator": "Gt", "values": [text]}]}
        for text in numbers
    ]
    texts = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["x"]}]}
    raw = {"nodeSelectorTerms": [*terms, texts]}
    selector = convert(raw, NodeSelector, "selector")
    assert list(find_unreadable_numbers(selector)) == [
        "nodeSelectorTerms[1].matchExpressions[0].values[0]",
        "nodeSelectorTerms[2].matchExpressions[0].values[0]",
    ]


POD = ObjectMeta(name="a", namespace=NAMESPACE, uid="uid-a")
HOST = "kubernetes.io/hostname"


def find(
    claim: PersistentVolumeClaim | None, *objects: PersistentVolume | StorageClass
) -> tuple[NodeSelector, ...] | MissingVolume:
    """Ask for a pod with that claim."""
    known = Volumes()
    if claim is not None:
        known.apply_claim(f"{NAMESPACE}/{claim.metadata.name}", claim)
    for each in objects:
        known.apply(type(each).__name__, each.metadata.name, each)
    return find_volume_nodes(POD, PodSpec(volumes=(volume_of(),)), known)


def nodes_for(
    claim: PersistentVolumeClaim | None, *objects: PersistentVolume | StorageClass
) -> list[Any]:
    """Return the terms of each selector."""
    found = find(claim, *objects)
    assert not isinstance(found, MissingVolume), found.message
    return [to_builtins(selector)["nodeSelectorTerms"] for selector in found]


def missing_for(
    claim: PersistentVolumeClaim | None, *objects: PersistentVolume | StorageClass
) -> str:
    """Return why there is no place yet."""
    found = find(claim, *objects)
    assert isinstance(found, MissingVolume), found
    return found.message


def within(key: str, *values: str) -> dict[str, Any]:
    """Write a term about one label."""
    return {
        "matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]
    }


def test_a_bound_claim_is_where_its_volume_is() -> None:
    claim = volume_claim(bound_to="pv-1")
    assert nodes_for(claim, volume(nodes=["n1"])) == [[within(HOST, "n1")]]
    assert nodes_for(claim, volume()) == []


def test_a_volume_with_a_zone_needs_a_node_of_it_or_one_without() -> None:
    (terms,) = nodes_for(volume_claim(bound_to="pv-1"), volume(zone="a__b"))
    assert terms[0] == within(ZONE, "a", "b")
    assert {one["operator"] for one in terms[1]["matchExpressions"]} == {"DoesNotExist"}
    assert ZONE in {one["key"] for one in terms[1]["matchExpressions"]}


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (None, "no PersistentVolumeClaim data yet"),
        (volume_claim(bound_to="pv-1"), "PersistentVolume pv-1 of data does not exist"),
        (
            volume_claim(storage_class="now"),
            "PersistentVolumeClaim data is not bound to a PersistentVolume yet",
        ),
        (
            replace(
                volume_claim(bound_to="pv-1"),
                status=PersistentVolumeClaimStatus(phase="Lost"),
            ),
            "PersistentVolumeClaim data has lost its PersistentVolume pv-1",
        ),
        (
            replace(
                volume_claim(),
                metadata=ObjectMeta(name="data", deletion_timestamp="2026-11-22"),
            ),
            "PersistentVolumeClaim data is being deleted",
        ),
        (
            volume_claim(),
            (
                "no free PersistentVolume of StorageClass late fits "
                "PersistentVolumeClaim data"
            ),
        ),
    ],
)
def test_what_kube_scheduler_waits_for_is_named(
    claim: PersistentVolumeClaim | None, message: str
) -> None:
    assert missing_for(claim, storage_class()) == message


def test_a_new_volume_is_made_where_its_class_allows() -> None:
    made = storage_class(provisioner="csi.example.com", zones=["a", "b"])
    assert nodes_for(volume_claim(), made) == [[within(ZONE, "a", "b")]]
    assert nodes_for(volume_claim(), storage_class(provisioner="csi.example.com")) == []


def test_local_volumes_that_are_free_are_one_term() -> None:
    """A thousand of them would else be a thousand terms."""
    free = [volume(f"pv-{n}", nodes=[f"n{n}"]) for n in (2, 1, 3)]
    assert nodes_for(volume_claim(), storage_class(), *free) == [
        [within(HOST, "n1", "n2", "n3")]
    ]


def test_a_volume_that_will_not_do_is_no_place() -> None:
    """Too small, of another class or mode, kept for another claim, or not selected."""
    small = volume("small", nodes=["n1"])
    other = volume("other", nodes=["n2"], storage_class="other", size="9Gi")
    kept = volume("kept", nodes=["n3"], size="9Gi")
    kept_ref = ClaimReference(namespace=NAMESPACE, name="somebody")
    kept = replace(kept, spec=replace(kept.spec, claim_ref=kept_ref))
    block = volume("block", nodes=["n4"], size="9Gi")
    block = replace(block, spec=replace(block.spec, volume_mode="Block"))
    good = volume("good", nodes=["n5"], size="9Gi")
    asked = volume_claim(size="5Gi")
    known = (storage_class(), small, other, kept, block)
    assert missing_for(asked, *known).startswith("no free PersistentVolume")
    assert nodes_for(asked, *known, good) == [[within(HOST, "n5")]]
    picky = replace(
        asked, spec=replace(asked.spec, selector=LabelSelector(match_labels={"a": "b"}))
    )
    assert missing_for(picky, *known, good).startswith("no free PersistentVolume")


def test_a_volume_kept_for_the_claim_is_its_place() -> None:
    kept = volume("kept", nodes=["n3"])
    ref = ClaimReference(namespace=NAMESPACE, name="data")
    kept = replace(kept, spec=replace(kept.spec, claim_ref=ref))
    assert nodes_for(volume_claim(), storage_class(), kept) == [[within(HOST, "n3")]]


def test_a_volume_that_is_being_made_binds_to_its_node() -> None:
    claim = volume_claim(annotations={SELECTED_NODE: "n7"})
    (terms,) = nodes_for(claim, storage_class(provisioner="csi.example.com"))
    assert terms[0]["matchFields"][0]["values"] == ["n7"]


def test_an_ephemeral_claim_is_named_after_pod_and_volume() -> None:
    spec = PodSpec(volumes=(PodVolume(name="scratch", ephemeral={}), PodVolume()))
    assert list(list_volume_claims(POD, spec)) == ["a-scratch"]
