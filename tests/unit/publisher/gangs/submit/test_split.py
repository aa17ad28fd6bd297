"""Which pods that wait are submitted together."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.meta import OwnerReference
from contracts.workload import Pod
from publisher.gangs.submit.company import Company
from publisher.gangs.submit.split import split_replacements, split_waiting
from tests.builders.plans import (
    context_about,
    context_of,
    opened_record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import waiting_pod
from tests.builders.values import UID
from tests.builders.workloads import (
    view_of_workloads,
)


def test_pods_of_a_replica_set_are_replaced_one_by_one() -> None:
    """Once the gang runs, where each makes it whole; claims in common tie pods."""

    def of(kind: str, name: str, claim: str = "", size: int = 2) -> Pod:
        owner = OwnerReference(kind=kind, name="o", uid=f"uid-{kind}", controller=True)
        shared = {"d": claim or name}
        pod = waiting_pod(name, gang="serve", size=size, shared=shared)
        return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))

    def split(*pods: Pod, ran: tuple[Pod, ...]) -> list[list[str]]:
        context = context_about(view_of_workloads(pods), pods[0])
        parts = split_replacements(pods, Company(ran=ran), context)
        return [[pod.metadata.name for pod in part] for part in parts]

    runs = (of("ReplicaSet", "runs"),)
    a, b, c = (of("ReplicaSet", name) for name in "abc")
    assert split(a, b, ran=()) == [["a", "b"]]
    assert split(a, b, ran=runs) == [["a"], ["b"]]
    assert split(of("Job", "d"), of("Job", "e"), ran=runs) == [["d", "e"]]
    tied = of("ReplicaSet", "f", claim="c")
    assert split(a, c, tied, ran=runs) == [["a"], ["c", "f"]]
    three = [of("ReplicaSet", name, size=3) for name in "gh"]
    assert split(*three, ran=runs) == [["g", "h"]]


def test_of_pods_that_are_asked_for_one_by_one_as_many_replace_as_were_lost() -> None:
    """Two of a ReplicaSet's three waiting pods; the third one is new."""
    owner = OwnerReference(kind="ReplicaSet", name="o", uid="uid-o", controller=True)

    def of(name: str, opened_by: str = "") -> Pod:
        pod = waiting_pod(
            name, gang="train", size=3, templates=["gpus"], opened_by=opened_by
        )
        return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))

    first = [of(name, UID) for name in "abc"]
    record = opened_record_of(submission_of(first), opened=3)
    waiting = [of(name) for name in "def"]
    context = context_of(view_of([first[0], *waiting]), record)
    split = split_waiting(
        waiting, context, leaving=(), records=[record], asked=(), held=()
    )
    found = [([p.metadata.name for p in each.pods], each.restores) for each in split]
    assert found == [(["d"], 3), (["e"], 3), (["f"], 0)]
