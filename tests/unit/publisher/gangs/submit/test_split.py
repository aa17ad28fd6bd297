"""Which pods that wait are submitted together."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.meta import OwnerReference
from contracts.workload import Pod
from publisher.gangs.submit.company import Company
from publisher.gangs.submit.split import split_replacements
from tests.builders.plans import context_about
from tests.builders.pods import waiting_pod
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
