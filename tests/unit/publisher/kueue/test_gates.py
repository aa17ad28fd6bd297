"""Our gate before Kueue's queue is opened where Kueue copies it from."""

from __future__ import annotations

from typing import Any, cast

import pytest

from publisher.kueue.gates import open_gate
from publisher.kueue.objects import ADMISSION_GATE, GATED_BY
from runtime.kube.api import KubernetesApi

Json = dict[str, Any]


class Api:
    """Takes patches."""

    def __init__(self) -> None:
        self.patched: list[tuple[str, str, object, str]] = []

    async def patch(self, kind: Any, key: str, body: Json, *, uid: str) -> None:
        """Take one."""
        gates = body["metadata"]["annotations"][GATED_BY]
        self.patched.append((kind.name, key, gates, uid))


def workload(gates: str, **owner: Any) -> Json:
    owners = [{"uid": "uid-j", "name": "train", "controller": True, **owner}]
    return {
        "metadata": {
            "namespace": "ns",
            "name": "job-train",
            "uid": "uid-w",
            "annotations": {GATED_BY: gates},
            "ownerReferences": owners if owner else [],
        }
    }


@pytest.mark.parametrize(
    ("gates", "left"),
    [(ADMISSION_GATE, None), (f"example.com/a,{ADMISSION_GATE}", "example.com/a")],
)
async def test_gates_of_others_stay(gates: str, left: str | None) -> None:
    api = Api()
    raw = workload(gates, apiVersion="batch/v1", kind="Job")
    assert await open_gate(cast("KubernetesApi", api), "ns/job-train", raw)
    assert api.patched == [("Job", "ns/train", left, "uid-j")]


async def test_a_workload_that_nothing_owns_has_its_own() -> None:
    api = Api()
    raw = workload(ADMISSION_GATE)
    assert await open_gate(cast("KubernetesApi", api), "ns/job-train", raw)
    assert api.patched == [("Workload.kueue.x-k8s.io", "ns/job-train", None, "uid-w")]


async def test_an_owner_of_an_unknown_kind_keeps_it() -> None:
    api = Api()
    raw = workload(ADMISSION_GATE, apiVersion="example.com/v1", kind="Other")
    assert not await open_gate(cast("KubernetesApi", api), "ns/job-train", raw)
    assert api.patched == []
