"""Names of extended resources are told from Kubernetes' own, and who asks for any."""

from __future__ import annotations

from typing import Any, cast

import pytest

from contracts.workload import Pod, PodSpec
from moorings.plan.extended_resources import (
    asks_for_devices,
    find_extended,
    list_extended,
)
from tests.builders.inputs import GATED, entry, written_pod

LIMITS = {
    "cpu": "1",
    "example.com/gpu": "1",
    "example.com/none": "0",
    "deviceclass.resource.kubernetes.io/gpu": "1",
    "requests.kubernetes.io/own": "1",
    "pod.alpha.kubernetes.io/opaque-int-resource-foo": "1",
}
EXTENDED = {
    "example.com/gpu",
    "deviceclass.resource.kubernetes.io/gpu",
    "pod.alpha.kubernetes.io/opaque-int-resource-foo",
}


def read_spec(**spec: Any) -> PodSpec:
    return cast("Pod", entry(written_pod("p", **spec)).decoded.value).spec


def limits(**amounts: str) -> dict[str, Any]:
    """Ask for amounts of resources of `example.com`."""
    named = {f"example.com/{name}": amount for name, amount in amounts.items()}
    return {"containers": [{"name": "c", "resources": {"limits": named}}]}


def test_a_pod_asks_for_extended_resources() -> None:
    raw = written_pod("p", containers=[{"name": "c", "resources": {"limits": LIMITS}}])
    assert list_extended(cast("Pod", entry(raw).decoded.value).spec) == EXTENDED
    assert set(find_extended(raw)) == EXTENDED


def test_amounts_elsewhere_are_no_wish() -> None:
    """A node pool's limits, a quota, what was used."""
    quota: dict[str, Any] = {"spec": {"limits": LIMITS, "hard": LIMITS}}
    status = {"status": {"resources": {"limits": LIMITS}}}
    assert list(find_extended({**quota, **status})) == []


@pytest.mark.parametrize(
    ("spec", "anything", "gpus"),
    [
        ({"claim": "c"}, True, True),
        ({"template": "t"}, True, True),
        (limits(gpu="1"), True, True),
        (limits(dongle="1"), True, False),
        (limits(gpu="0"), False, False),
        ({"cpu": 1}, False, False),
        (GATED, False, False),
    ],
)
def test_who_asks_for_devices(spec: dict[str, Any], anything: bool, gpus: bool) -> None:
    """For any that there may be, or for those that are said to be devices."""
    read = read_spec(**spec)
    assert asks_for_devices(read) is anything
    assert asks_for_devices(read, {"example.com/gpu"}) is gpus
