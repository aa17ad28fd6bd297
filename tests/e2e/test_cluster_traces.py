"""One gang as it is seen: a trace over all services, and what is counted of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorings.local.process import find_free_port
from tests.lab import cluster
from tests.lab.cluster import gang_pod, is_bound, pods_until
from tests.lab.collector import ReceivedSpan, collecting
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.metrics import Scraped, scrape
from tests.lab.promtool import promtool
from tests.lab.services import eventually

WITHIN_S = 60.0
BOUND = "moorings_gang_stage_duration_seconds_count"
SPANS = {
    "submit": "publisher",
    "decide": "solver",
    "write": "publisher",
    "open gates": "publisher",
}


async def test_a_gang_is_one_trace_and_is_counted_until_it_is_bound(
    kube: Kube,
    namespace: str,
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each span is the child of the one before, and the log names the trace."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")  # of both processes
    with collecting() as collector:
        address = f"127.0.0.1:{find_free_port()}"
        async with cluster.stack(
            control_plane,
            tmp_path,
            traces=collector.url,
            PUBLISHER_HEALTH_ADDRESS=address,
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

            def list_own() -> list[ReceivedSpan]:
                """Tests before this one may have left pods, which have other traces."""
                key = "k8s.namespace.name"
                return [
                    s for s in collector.spans if s.attributes.get(key) == namespace
                ]

            def has_all() -> bool:
                return {span.name for span in list_own()} >= SPANS.keys()

            await eventually(has_all, lambda: str(collector.spans), WITHIN_S)
            log = stack["solver"].log()

            async def is_counted() -> bool:
                bound = (await scrape(address)).of(BOUND, stage="bound")
                return bound == 1

            await eventually(is_counted, stack["publisher"].log, WITHIN_S)
            found = await scrape(address)
    own = list_own()
    _check_trace(own)
    _check_counts(found)
    decided = [json.loads(line) for line in log.splitlines() if "gang.decided" in line]
    traces = {span.trace for span in own}
    assert len(traces) == 1, own
    assert traces <= {line["trace_id"] for line in decided}


def _check_trace(spans: list[ReceivedSpan]) -> None:
    by_id = {span.id: span for span in spans}
    opened = next(span for span in spans if span.name == "open gates")
    path = [opened]
    while path[-1].parent:
        path.append(by_id[path[-1].parent])
    assert [span.name for span in reversed(path)] == list(SPANS)
    assert {span.name: span.service for span in path} == SPANS
    assert len({span.trace for span in path}) == 1
    for span in path:
        assert span.began_ns <= span.ended_ns


def _check_counts(found: Scraped) -> None:
    for purpose in ("allocate", "open"):
        written = found.of("moorings_writes_total", purpose=purpose, result="written")
        assert written >= 2, purpose
    assert found.of("leader_election_master_status", name="moorings-publisher") == 1
    assert found.of("workqueue_adds_total", name="groups") >= 1
    assert found.of("workqueue_depth", name="groups") == 0
    assert found.of("rest_client_requests_total", method="PATCH", code="200") >= 4
    assert found.of("moorings_stream_lag_messages", stream="DEC") == 0
    promtool("check", "metrics", text=found.text)
