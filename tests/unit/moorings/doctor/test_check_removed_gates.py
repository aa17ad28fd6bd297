"""Gates that an upgrade to 1.38 takes away are told before it."""

from __future__ import annotations

from moorings.doctor.check_removed_gates import check_removed_gates
from tests.builders.doctor import cluster_facts, control_plane_pod


def test_a_component_is_told_which_of_its_gates_1_38_does_not_have() -> None:
    gates = "--feature-gates=DynamicResourceAllocation=true,DRADeviceTaints=true"
    pods = (control_plane_pod("kube-apiserver", gates), control_plane_pod("etcd"))
    (line,) = check_removed_gates(cluster_facts(control_plane=pods))
    assert (line.check, line.level) == ("kubernetes.removed-gates", "warn")
    assert "1.38 has no gate DynamicResourceAllocation: kube-apiserver" in line.why


def test_other_gates_are_fine() -> None:
    pods = (control_plane_pod("kube-scheduler", "--feature-gates=DRAAdminAccess=true"),)
    assert not list(check_removed_gates(cluster_facts(control_plane=pods)))
