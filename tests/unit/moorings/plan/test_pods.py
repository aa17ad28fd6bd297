"""Which pods a plan has to decide: real ones, and one for each replica."""

from __future__ import annotations

from contracts.claim import ResourceClaim
from contracts.ids import NodeName
from contracts.kubernetes.decode import KubernetesObject
from contracts.meta import ObjectMeta
from contracts.pods.members import MemberPod
from contracts.workload import PodTemplate, ReplicatedPodTemplate, Workload
from moorings.plan.pods import allow_any_node, find_pods
from tests import builders

CLAIM = builders.claim(name="c")
CLAIMS = {f"{builders.NAMESPACE}/c": CLAIM}
POD = builders.pod("a", claims={"gpus": "c"})


def pods(
    *objects: KubernetesObject, claims: dict[str, ResourceClaim] | None = None
) -> list[MemberPod]:
    """Find the pods among these objects."""
    return list(find_pods(objects, CLAIMS if claims is None else claims))


def test_a_pod_that_is_bound_is_decided_already() -> None:
    """And one without claims needs nothing."""
    bound = builders.pod("b", claims={"gpus": "c"}, node_name=NodeName("n"))
    assert [pod.name for pod in pods(POD, bound, builders.pod("bare"))] == ["a"]


def test_a_named_claim_asks_for_what_it_says_while_it_is_free() -> None:
    """One that is allocated, or not in the input, has no spec to decide."""
    (claim,) = pods(POD)[0].claims
    assert (claim.claim_name, claim.spec) == ("c", CLAIM.spec)
    (claim,) = pods(POD, claims={})[0].claims
    assert (claim.claim_name, claim.spec) == ("c", None)


def test_each_replica_of_a_workload_is_a_pod() -> None:
    """Named after workload and role, as its controller would."""
    spec = builders.pod("x", templates={"gpus": "t"}).spec
    template = PodTemplate(spec=spec)
    workload = Workload(
        kind="JobSet",
        metadata=ObjectMeta(name="train", namespace="team-b"),
        templates=(
            ReplicatedPodTemplate(name="driver", template=template),
            ReplicatedPodTemplate(count=2, template=template),
        ),
    )
    replicas = pods(workload)
    assert [pod.name for pod in replicas] == ["train-driver-0", "train-0", "train-1"]
    assert {pod.namespace for pod in replicas} == {"team-b"}
    assert [pod.claims[0].template_name for pod in replicas] == ["t", "t", "t"]


def test_an_extended_resource_of_a_class_is_a_request() -> None:
    """Without the class it is a number that a device plugin counts."""
    name = "example.com/gpu"
    pod = builders.pod("a", requests={name: 1})
    device_class = builders.device_class(extended_resource_name=name)
    assert [each.name for each in pods(pod, device_class)] == ["a"]
    assert pods(pod) == []


def test_where_no_node_is_described_a_pod_may_go_anywhere() -> None:
    """What it needs of a node's resources stays."""
    picky = builders.pod(
        "a", claims={"gpus": "c"}, requests={"cpu": 2}, node_selector={"rack": "r"}
    )
    (pod,) = pods(picky)
    anywhere = allow_any_node(pod)
    assert pod.node.node_selector == {"rack": "r"}
    assert not anywhere.node.node_selector
    assert anywhere.node.resources == pod.node.resources
