"""Which gangs a plan asks for, of the objects that it is given."""

from __future__ import annotations

from typing import Any

from contracts.allocation import Reason, Rule
from moorings.plan.lone_claims import make_claims_gang, name_fields
from moorings.plan.work import PlanWork, prepare_work
from tests import builders
from tests.builders.inputs import GATED, entries, written_job, written_pod


def members(work: PlanWork) -> dict[str, list[tuple[str, int]]]:
    """The members of gangs, with their counts, both in order."""
    return {
        message.gang.metadata.name: [
            (member.name, member.count) for member in message.gang.spec.members
        ]
        for message in work.gangs
    }


def prepare(*objects: Any, node: str | None = None) -> PlanWork:
    """Prepare a plan of objects."""
    return prepare_work(entries(*objects), node)


def test_a_claim_that_no_pod_names_is_a_gang_behind_all_others() -> None:
    claims = builders.claim(name="alone"), builders.claim(name="named")
    work = prepare(*claims, written_pod("user", claim="named"))
    assert members(work) == {"user": [("pod", 1)], "alone": [("claim", 1)]}
    assert [each.gang.spec.priority for each in work.gangs] == [0, -1]
    (alone,) = prepare(claims[0]).gangs
    assert alone.gang.spec.priority == 0


def test_equal_pods_of_one_label_are_one_member() -> None:
    template = builders.claim_template(name="one")
    job = written_job("train", 3, gang="train", size=3, template="one")
    work = prepare(template, job)
    assert members(work) == {"train": [("pod", 3)]}
    (places,) = work.gangs[0].places.values()
    assert [place.pods[0].name for place in places] == ["train-0", "train-1", "train-2"]


def test_allocated_claims_ask_for_nothing() -> None:
    held = builders.claim(name="held", allocated=builders.allocation())
    work = prepare(held)
    assert work.gangs == ()
    assert work.settled.claims == 1


def test_pods_without_our_gate_are_submitted_without_places() -> None:
    """kube-scheduler binds them, and makes claims for their extended resources."""
    template = builders.claim_template(name="one")
    for more, is_placed in (({}, False), (GATED, True)):
        work = prepare(template, written_pod("a", template="one", **more))
        (record,) = work.snapshot.gangs.values()
        assert record.submission is not None
        assert bool(record.submission.places) is is_placed
        assert work.gangs[0].places


def test_with_a_node_all_claims_are_decided_together() -> None:
    """As kube-scheduler would for one pod, and a slice may be all that names it."""
    claims = builders.claim(name="a"), builders.claim(name="b")
    devices = builders.resource_slice(*builders.devices(1), node="node-7")
    (message,) = prepare(devices, *claims, node="node-7").gangs
    (member,) = message.gang.spec.members
    assert [claim.claim_name for claim in member.claims] == ["a", "b"]
    assert member.node.node_name == "node-7"


def test_claims_of_a_node_have_their_names_and_count_once() -> None:
    names = ["a.b", "a-b", "a.b", "c"]
    devices = builders.resource_slice(*builders.devices(1), node="node-7")
    claims = [builders.claim(name=name) for name in names]
    work = prepare(devices, *claims, node="node-7")
    (member,) = work.gangs[0].gang.spec.members
    assert [(claim.name, claim.claim_name) for claim in member.claims] == [
        ("a-b", "a.b"),
        ("a-b-1", "a-b"),
        ("c", "c"),
    ]
    (note,) = work.notes
    assert note.startswith("ResourceClaim team-a/a.b: more than once in the input")


def test_fields_are_named_as_the_authors_of_claims_wrote_them() -> None:
    gang = make_claims_gang("plan", [builders.claim(name=name) for name in "ab"])
    field = "spec.members[0].claims[1].spec.devices"
    reasons = (
        Reason(rule=Rule.INVALID, subject="plan", field=field),
        Reason(rule=Rule.INVALID, subject="plan", field="spec.members"),
    )
    assert [(r.subject, r.field) for r in name_fields(gang, reasons)] == [
        ("b", "spec.devices"),
        ("plan", "spec.members"),
    ]


def test_on_one_node_each_namespace_has_a_gang_of_its_own() -> None:
    """A pod uses claims of its own namespace, so no pod could have them all."""
    spaces = (("b", "b"), ("a", "a"), ("c", "b"))
    claims = [builders.claim(name=name, namespace=space) for name, space in spaces]
    work = prepare(builders.resource_slice(node="n"), *claims, node="n")
    assert [
        (message.gang.metadata.namespace, [c.claim_name for c in member.claims])
        for message in work.gangs
        for member in message.gang.spec.members
    ] == [("b", ["b", "c"]), ("a", ["a"])]
    assert len({message.uid for message in work.gangs}) == 2


def test_a_volcano_job_is_planned_with_its_minimum() -> None:
    job = written_job("vj", 1, template="one")
    pod = job["spec"]["template"]
    spec = {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 4, "template": pod}]}
    raw = job | {"apiVersion": "batch.volcano.sh/v1alpha1", "spec": spec}
    work = prepare(builders.claim_template(name="one"), raw)
    (message,) = work.gangs
    assert [(m.count, m.min_count) for m in message.gang.spec.members] == [(4, 2)]
