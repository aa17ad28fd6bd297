"""One trace a gang, from its submission to its gates, over solver and publisher."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab import cluster
from tests.lab.cluster import gang_pod, is_bound, pods_until
from tests.lab.collector import Collector, collecting
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually

WITHIN_S = 60.0
SPANS = {
    "submit": "publisher",
    "decide": "solver",
    "write": "publisher",
    "open gates": "publisher",
}


async def test_a_gang_is_one_trace_over_all_services(
    kube: Kube,
    namespace: str,
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each span is the child of the one before, and the log names the trace."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")  # of both processes
    with collecting() as collector:
        async with cluster.stack(
            control_plane, tmp_path, traces=collector.url
        ) as stack:
            await cluster.fleet(kube, namespace, 1, 4)
            spec = objects.requests(f"{namespace}.example.com", 2)
            await kube.create(objects.template(namespace, "pair", spec))
            names = ["train-0", "train-1"]
            for name in names:
                pod = gang_pod(
                    namespace, name, gang="train", size=2, templates={"gpus": "pair"}
                )
                await kube.create(pod)
            await pods_until(kube, namespace, names, is_bound)

            def has_all() -> bool:
                return {span.name for span in collector.spans} >= SPANS.keys()

            await eventually(has_all, lambda: str(collector.spans), WITHIN_S)
            log = stack["solver"].log()
    _check(collector, namespace)
    decided = [json.loads(line) for line in log.splitlines() if "gang.decided" in line]
    (trace,) = {span.trace for span in collector.spans}
    assert trace in [line["trace_id"] for line in decided]


def _check(collector: Collector, namespace: str) -> None:
    by_id = {span.id: span for span in collector.spans}
    opened = next(span for span in collector.spans if span.name == "open gates")
    path = [opened]
    while path[-1].parent:
        path.append(by_id[path[-1].parent])
    assert [span.name for span in reversed(path)] == list(SPANS)
    assert {span.name: span.service for span in path} == SPANS
    assert len({span.trace for span in path}) == 1
    for span in path:
        assert span.began_ns <= span.ended_ns
        assert span.attributes["k8s.namespace.name"] == namespace
