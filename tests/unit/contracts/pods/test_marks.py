"""What looks like a mark of ours and is none is told from what others write."""

from __future__ import annotations

import pytest

from contracts.names import GATE
from contracts.pods.marks import find_unknown_mark, list_unknown_gates
from contracts.workload import PodSchedulingGate, PodSpec
from tests.builders import pod


def test_a_misspelt_mark_is_found() -> None:
    """By its place, and with what was most likely meant."""
    marked = pod(annotations={"moorings.dev/topolgy": "[]", "example.com/x": "1"})
    assert find_unknown_mark(marked) == (
        "annotation moorings.dev/topolgy is unknown; did you mean "
        "moorings.dev/topology?"
    )
    assert find_unknown_mark(pod(labels={"moorings.dev/qqqqqqqq": "1"})) == (
        "label moorings.dev/qqqqqqqq is unknown"
    )
    known = pod(
        labels={"moorings.dev/gang": "train"},
        annotations={"moorings.dev/gang-size": "3"},
    )
    assert find_unknown_mark(known) is None


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("mooring.dev/gang", "gang"),
        ("morings.dev/gang-size", "gang-size"),
        ("moorings.de/topology", "topology"),
        ("mooorings.dev/topolgy", "topology"),
        ("moorings.dve/constraints", "constraints"),
        ("moorings.io/gang", "gang"),
        ("moorings.dev.io/gang", "gang"),
        ("mooring.com/gang-size", "gang-size"),
    ],
)
def test_a_mark_in_a_domain_that_is_nearly_ours_is_found(key: str, meant: str) -> None:
    """As a label and as an annotation."""
    said = f"{key} is unknown; did you mean moorings.dev/{meant}?"
    assert find_unknown_mark(pod(labels={key: "x"})) == f"label {said}"
    assert find_unknown_mark(pod(annotations={key: "x"})) == f"annotation {said}"


THEIRS = (
    "app",
    "gang",
    "app.kubernetes.io/name",
    "batch.kubernetes.io/job-name",
    "batch.volcano.sh/task-spec",
    "cluster.x-k8s.io/cluster-name",
    "example.com/gang",
    "jobset.sigs.k8s.io/jobset-name",
    "k8s.v1.cni.cncf.io/networks",
    "karpenter.sh/do-not-disrupt",
    "kueue.x-k8s.io/queue-name",
    "leaderworkerset.sigs.k8s.io/name",
    "mooring.dev/backup",
    "moorings.com/workload",
    "moorings.de/app",
    "morning.dev/gang",
    "net.moorings.dev/rail",
    "nvidia.com/gpu.product",
    "pod-group.scheduling.sigs.k8s.io/name",
    "ray.io/cluster",
    "resource.kubernetes.io/pod-claim-name",
    "rings.dev/gang",
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "sidecar.istio.io/inject",
    "sparkoperator.k8s.io/app-name",
    "topology.kubernetes.io/zone",
    "training.kubeflow.org/replica-type",
    "volcano.sh/queue-name",
    "workload.codeflare.dev/appwrapper",
    "workflows.argoproj.io/workflow",
    "yunikorn.apache.org/task-group-name",
)


@pytest.mark.parametrize("key", THEIRS)
def test_what_other_projects_write_is_theirs(key: str) -> None:
    assert find_unknown_mark(pod(labels={key: "x"}, annotations={key: "x"})) is None


def test_a_gate_in_our_name_is_ours_or_nobodys() -> None:
    """Also where the domain is misspelt."""
    names = (
        "example.com/gate",
        "moorings.dev/alocation",
        GATE,
        "mooring.dev/allocation",
        "moorings.example/allocation",
    )
    gates = tuple(PodSchedulingGate(name=name) for name in names)
    found = list(list_unknown_gates(PodSpec(scheduling_gates=gates)))
    assert [index for index, _ in found] == [1, 3]
    assert found[1][1] == (
        f"nobody opens the gate mooring.dev/allocation; did you mean {GATE}?"
    )
