"""A job becomes a gang."""

from __future__ import annotations

import pytest
from msgspec import structs

from moorings.simulate.job import submit_job
from tests.builders.simulated import make_job


@pytest.mark.parametrize(
    ("devices", "each", "pods"),
    [
        (1, 0, [(1, 1)]),
        (8, 0, [(1, 8)]),
        (20, 0, [(2, 8), (1, 4)]),
        (20, 4, [(5, 4)]),
    ],
)
def test_pods_fill_nodes(devices: int, each: int, pods: list[tuple[int, int]]) -> None:
    job = structs.replace(make_job("a", devices, limit_s=None), each=each)
    gang = submit_job(job, 8, "gpu.example.com").gang
    made = []
    for member in gang.spec.members:
        spec = member.claims[0].spec
        assert spec is not None
        exactly = spec.devices.requests[0].exactly
        assert exactly is not None
        made.append((member.count, exactly.count))
    assert made == pods
    assert gang.spec.duration == ""
    limited = submit_job(make_job("a", 1, limit_s=90), 8, "gpu.example.com")
    assert limited.gang.spec.duration == "90s"
