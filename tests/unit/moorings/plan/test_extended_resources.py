"""Names of extended resources are told from Kubernetes' own."""

from __future__ import annotations

from typing import Any, cast

from contracts.workload import Pod
from moorings.plan.extended_resources import find_extended, list_extended
from tests.builders.inputs import entry, written_pod

LIMITS = {
    "cpu": "1",
    "example.com/gpu": "1",
    "example.com/none": "0",
    "deviceclass.resource.kubernetes.io/gpu": "1",
    "requests.kubernetes.io/own": "1",
}
EXTENDED = {"example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"}


def test_a_pod_asks_for_extended_resources() -> None:
    raw = written_pod("p", containers=[{"name": "c", "resources": {"limits": LIMITS}}])
    assert list_extended(cast("Pod", entry(raw).decoded.value).spec) == EXTENDED
    assert set(find_extended(raw)) == EXTENDED


def test_amounts_elsewhere_are_no_wish() -> None:
    """A node pool's limits, a quota, what was used."""
    quota: dict[str, Any] = {"spec": {"limits": LIMITS, "hard": LIMITS}}
    status = {"status": {"resources": {"limits": LIMITS}}}
    assert list(find_extended({**quota, **status})) == []
