"""Of Jobs that Kueue manages the publisher takes its own gate away, and nothing else.

The component k8s/components/kueue lets it patch them, which alone would let it run
anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.manifests import K8S
from tests.lab.personas import BY_NAME

PUBLISHER = BY_NAME["publisher"].user
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
NOTHING = "writes nothing of a Job or Workload but"
OTHER_GATE = "opens no gate of Kueue's but moorings.dev/devices"
BOTH = "moorings.dev/devices,example.com/budget"


def annotated(value: str | None) -> Json:
    return {"metadata": {"annotations": {GATED_BY: value}}}


@pytest.fixture
async def job(installed: Installed, admin: Kube) -> AsyncIterator[Json]:
    """A suspended Job that waits at two gates, once the policy holds."""
    component = sorted((K8S / "components" / "kueue").glob("moorings-*.yaml"))
    files = [word for path in component for word in ("-f", str(path))]
    installed.kubectl("apply", *files)
    async with admin.namespace() as space:
        pod = objects.pod(space, "p")
        template = {"spec": {**pod["spec"], "restartPolicy": "Never"}}
        made = await admin.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": "train",
                    "namespace": space,
                    "annotations": {GATED_BY: BOTH, "own": "kept"},
                },
                "spec": {"suspend": True, "template": template},
            }
        )
        async with admin.acting_as(PUBLISHER) as publisher:
            for number in range(120):
                try:
                    labels = {"try": f"{number}"}
                    await publisher.patch(made, {"metadata": {"labels": labels}})
                except RefusedError as refused:
                    if NOTHING in str(refused):
                        break
                await asyncio.sleep(0.25)
            else:
                raise AssertionError("the policy does not hold")
        yield made
    installed.kubectl("delete", *files)


ATTEMPTS: dict[str, tuple[Json, str]] = {
    "unsuspends": ({"spec": {"suspend": False}}, NOTHING),
    "parallelism": ({"spec": {"parallelism": 9}}, NOTHING),
    "node-selector": (
        {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
        NOTHING,
    ),
    "annotation": ({"metadata": {"annotations": {"own": None}}}, NOTHING),
    "finalizer": ({"metadata": {"finalizers": ["example.com/f"]}}, NOTHING),
    "all-gates": (annotated(None), OTHER_GATE),
    "gate-of-others": (annotated("moorings.dev/devices"), OTHER_GATE),
    "adds-a-gate": (annotated(f"{BOTH},example.com/more"), OTHER_GATE),
}


async def test_publisher_takes_its_gate_away_and_nothing_else(
    admin: Kube, job: Json
) -> None:
    async with admin.acting_as(PUBLISHER) as publisher:
        for patch, words in ATTEMPTS.values():
            with pytest.raises(RefusedError, match=words):
                await publisher.patch(job, patch)
        opened = await publisher.patch(job, annotated("example.com/budget"))
    assert opened["metadata"]["annotations"] == {
        GATED_BY: "example.com/budget",
        "own": "kept",
    }
