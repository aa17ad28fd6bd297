"""`moorings plan` heeds what Nodes have and keep away, over YAML as people write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.allocation import Rule
from moorings.cli.documents import read_documents
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.plan import Plan
from moorings.plan.reading import Reader
from solver.cel.evaluator import SelectorEvaluator

DEVICES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {extendedResourceName: example.com/gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}
"""
NODE = """
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {zone: west}}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "10"}
  conditions: [{type: Ready, status: "True"}]
"""
BOUND = """
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default}
spec:
  nodeName: node-1
  initContainers:
  - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: 500m}}}
  containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]
status: {phase: Running}
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default}
spec:
  tolerations: [{key: gpu, operator: Exists}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  containers: [{name: c, resources: {requests: {cpu: CPU}}}]
"""
DEPLOYMENT = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: 2
  template:
    spec:
      nodeSelector: {zone: ZONE}
      tolerations: [{operator: Exists}]
      containers: [{name: c, resources: {limits: {cpu: 3, example.com/gpu: 1}}}]
"""
Plans = Callable[..., Plan]


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


@pytest.fixture
def plan(planner: Planner, tmp_path: Path) -> Plans:
    def planned(*parts: str, order: str = "optimal") -> Plan:
        (tmp_path / "objects.yaml").write_text("".join(parts))
        reader = Reader(lambda _: None)
        objects = list(reader.read(read_documents([str(tmp_path)])))
        found = planner.plan(objects, PlanOptions(order=order))
        assert found.error is None
        return found

    return planned


def pod(name: str = "p", cpu: str = "2", **more: str) -> str:
    text = POD.replace("NAME", name).replace("CPU", cpu)
    for old, new in more.items():
        text = text.replace(old, new)
    return text


def test_a_pod_that_needs_too_much_cpu_is_told_which_node_has_how_much(
    plan: Plans,
) -> None:
    found = plan(DEVICES, NODE, BOUND, pod(cpu="3"))
    (gang,) = found.gangs
    assert gang.verdict == "none"
    (reason,) = gang.reasons
    assert reason.rule == "NodeResourcesInsufficient"
    assert reason.field == "node.resources[cpu]"
    assert reason.message == (
        "1 pod needs cpu 3 on one node; node-1, the only otherwise suitable "
        "node, has cpu 2500m left"
    )


def test_a_pod_that_fits_beside_bound_pods_is_placed(plan: Plans) -> None:
    found = plan(DEVICES, NODE, BOUND, pod(cpu="2500m"))
    assert [m.node for m in found.gangs[0].members] == ["node-1"]


def test_both_orders_count_what_they_placed(plan: Plans) -> None:
    for order in ("optimal", "upstream"):
        found = plan(DEVICES, NODE, pod("a", "3"), pod("b", "3"), order=order)
        assert sorted(gang.verdict for gang in found.gangs) == ["allocated", "none"]


def test_a_taint_needs_a_toleration(plan: Plans) -> None:
    text = pod().replace("tolerations: [{key: gpu, operator: Exists}]", "")
    (reason,) = plan(DEVICES, NODE, text).gangs[0].reasons
    assert (reason.rule, reason.subject) == ("NodeTainted", "pod/gpu/gpu")
    assert "gpu:NoSchedule on node-1" in reason.message


def test_replicas_of_a_workload_ask_for_their_own_nodes(plan: Plans) -> None:
    found = plan(DEVICES, NODE, DEPLOYMENT.replace("ZONE", "west"))
    assert sorted(gang.verdict for gang in found.gangs) == ["allocated", "none"]
    found = plan(DEVICES, NODE, DEPLOYMENT.replace("ZONE", "east"))
    assert {g.reasons[0].rule for g in found.gangs} == {"NodeNotSelected"}


def test_without_any_node_object_nothing_limits(plan: Plans) -> None:
    found = plan(DEVICES, BOUND, pod(cpu="300"), DEPLOYMENT.replace("ZONE", "nowhere"))
    assert [g.verdict for g in found.gangs].count("allocated") == 2


@pytest.mark.parametrize(
    "more",
    [
        (
            "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, "
            "minDomains: 2, whenUnsatisfiable: DoNotSchedule, "
            "labelSelector: {}}]"
        ),
        "hostNetwork: true",
        (
            "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuring"
            "Execution: [{topologyKey: zone, labelSelector: {}}]}}"
        ),
    ],
)
def test_what_pods_ask_of_each_other_counts_where_there_are_nodes(
    plan: Plans, more: str
) -> None:
    ports = "{name: c, ports: [{containerPort: 80}],"
    texts = [
        pod(name).replace("spec:\n", f"spec:\n  {more}\n").replace("{name: c,", ports)
        for name in ("a", "b")
    ]
    node = NODE.replace("labels: {", "labels: {kubernetes.io/hostname: node-1, ")
    assert {gang.verdict for gang in plan(DEVICES, *texts).gangs} == {"allocated"}
    found = plan(DEVICES, node, *texts).gangs
    assert sorted(gang.verdict for gang in found) == ["allocated", "none"]
    (reason,) = next(gang.reasons for gang in found if gang.reasons)
    assert reason.rule == "Outranked"


@pytest.mark.parametrize(
    "more",
    [
        (
            "topologySpreadConstraints: [{topologyKey: zone, "
            "whenUnsatisfiable: ScheduleAnyway}]"
        ),
        (
            "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuring"
            "Execution: [{weight: 1, preference: {}}]}}"
        ),
    ],
)
def test_preferences_are_ignored(plan: Plans, more: str) -> None:
    text = pod().replace("spec:\n", f"spec:\n  {more}\n")
    assert plan(DEVICES, NODE, text).gangs[0].verdict == "allocated"


SHARED = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: both, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""


def in_gang(text: str) -> str:
    meta = "labels: {moorings.dev/gang: g}, annotations: {moorings.dev/gang-size: '2'}"
    return text.replace("namespace: default}", f"namespace: default, {meta}}}")


def test_pods_of_a_gang_that_share_a_claim_fit_together_or_not_at_all(
    plan: Plans,
) -> None:
    by_name = {"resourceClaimTemplateName: one": "resourceClaimName: both"}
    for cpu, verdict in (("2", "allocated"), ("2500m", "none")):
        pods = (in_gang(pod(name, cpu, **by_name)) for name in "ab")
        (gang,) = plan(DEVICES, NODE, SHARED, *pods).gangs
        assert gang.verdict == verdict
    # They need not be alike: one does not tolerate the node, so neither is there.
    strange = in_gang(pod("b", **by_name, operator="value"))
    strange = strange.replace("value: Exists", "value: other")
    first = in_gang(pod("a", **by_name))
    (gang,) = plan(DEVICES, NODE, SHARED, first, strange).gangs
    assert gang.reasons[0].rule is Rule.NODE_TAINTED


MPI_JOB = """
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: nccl, namespace: default}
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {spec: {containers: [{name: mpi}]}}
    Worker:
      replicas: 2
      template:
        spec:
          affinity:
            podAntiAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
              - labelSelector:
                  matchLabels:
                    training.kubeflow.org/job-name: nccl
                    training.kubeflow.org/job-role: worker
                topologyKey: kubernetes.io/hostname
          tolerations: [{key: gpu, operator: Exists}]
          resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
          containers: [{name: mpi, resources: {claims: [{name: gpu}]}}]
"""


def test_workers_that_must_be_apart_get_a_node_each(plan: Plans) -> None:
    """The labels that the operator will write are those that the rule means."""
    labelled = NODE.replace("labels: {", "labels: {kubernetes.io/hostname: node-1, ")
    # The launcher tolerates nothing, and has a node of its own.
    free = labelled.replace("node-1", "node-0").replace("spec:", "unused:")
    (gang,) = plan(DEVICES, labelled, free, MPI_JOB).gangs
    assert gang.reasons[0].rule == "PodAntiAffinity"
    second = "".join(("---", DEVICES.split("---")[1], labelled))
    second = second.replace("node-1", "node-2")
    (gang,) = plan(DEVICES, labelled, second, free, MPI_JOB).gangs
    assert gang.verdict == "allocated", gang.reasons
    assert sorted(pod.node for pod in gang.members) == ["node-0", "node-1", "node-2"]
