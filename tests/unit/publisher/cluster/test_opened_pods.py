"""A pod that is on no node yet uses one only where that was decided for it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.ids import GangKey, GangUID, Namespace
from contracts.names import GANG_UID, INDEX
from contracts.quantity import Quantity
from publisher.cluster.opened_pods import OpenedPods
from publisher.gangs.records import PodGangRecord
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import record_of, submission_of
from tests.builders.pods import refused_pod, waiting_pod

KEY = GangKey(Namespace(builders.NAMESPACE), GangUID(builders.UID))
PLACE = "worker/0"
Json = dict[str, Any]


def pod(
    name: str = "a",
    *,
    place: str = PLACE,
    gang: str = builders.UID,
    node: str = builders.NODE,
    cpu: str = "1",
) -> Json:
    """Make a pod that says that its gate was opened for a gang."""
    notes = {GANG_UID: gang, INDEX: place}
    made = refused_pod(name, node, annotations=notes, opened_by=gang)
    raw = cast("Json", to_builtins(made))
    raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return raw | {"apiVersion": "v1", "kind": "Pod"}


def named() -> PodGangRecord:
    """Decide a gang that was submitted with its pod `a`."""
    submitted = submission_of((waiting_pod("a", gang="train", templates=["gpus"]),))
    return record_of(submitted, gang_allocated())


def before_its_pods() -> PodGangRecord:
    """Decide a gang whose one pod may ask for two CPUs."""
    message = submission_of(count=1)
    (member,) = message.gang.spec.members
    node = replace(member.node, resources={"cpu": Quantity.of(2)})
    spec = replace(message.gang.spec, members=(replace(member, node=node),))
    message = replace(message, gang=replace(message.gang, spec=spec))
    return record_of(message, gang_allocated())


def opened_for(record: PodGangRecord | None) -> OpenedPods:
    """Know this gang and no other."""
    return OpenedPods(lambda key: record if key == KEY else None)


@pytest.mark.parametrize(
    ("item", "counts"),
    [
        (pod(), True),
        (pod("stranger"), False),
        (pod(gang="another"), False),
        (pod(place="worker/1"), False),
        (pod(place="9" * 5000), False),
        (pod(node="node-7"), False),
        (pod() | {"metadata": pod()["metadata"] | {"namespace": "other"}}, False),
    ],
    ids=["it", "its name", "gang", "index", "digits", "node", "namespace"],
)
def test_the_submission_names_the_pods_that_count(item: Json, *, counts: bool) -> None:
    """On the node that was decided for their place; whatever else they say."""
    node = "node-7" if "node-7" in str(item) else builders.NODE
    assert opened_for(named()).is_decided(item, node) == counts
    assert not opened_for(None).is_decided(item, node)


def test_what_is_not_decided_counts_nowhere() -> None:
    """A gate that its author took off is no decision."""
    submitted = named().submission
    assert submitted is not None
    assert not opened_for(record_of(submitted)).is_decided(pod(), builders.NODE)


def test_of_a_gang_before_its_pods_one_pod_counts_for_a_place() -> None:
    """As much as was decided for it, and the next one when it is on its node."""
    opened = opened_for(before_its_pods())
    assert opened.is_decided(pod("a"), builders.NODE)
    assert not opened.is_decided(pod("b"), builders.NODE)
    assert opened.is_decided(pod("a"), builders.NODE)
    opened.forget("uid-a")
    assert opened.is_decided(pod("b"), builders.NODE)
    assert not opened_for(before_its_pods()).is_decided(
        pod(cpu="100000"), builders.NODE
    )


def test_what_was_found_out_of_a_pod_holds_until_its_evidence_changes() -> None:
    """Its gang is told of anew, or a place becomes free; another gang is no news."""
    known = {KEY: before_its_pods()}
    opened = OpenedPods(known.get)
    assert opened.is_decided(pod("a"), builders.NODE)
    assert not opened.is_decided(pod("b"), builders.NODE)
    found = opened.evidence_on(pod("b"))
    known[GangKey(Namespace("other"), GangUID("u"))] = named()
    opened.forget("uid-c")
    assert opened.evidence_on(pod("b")) == found
    opened.forget("uid-a")
    assert opened.evidence_on(pod("b")) != found
    freed = opened.evidence_on(pod("b"))
    known[KEY] = named()
    assert opened.evidence_on(pod("b")) != freed
