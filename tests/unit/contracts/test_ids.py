"""Identities as texts and as keys."""

from __future__ import annotations

import pytest

from contracts.ids import (
    ClaimRef,
    DeviceID,
    DeviceName,
    DriverName,
    Namespace,
    PoolID,
    PoolName,
    object_key,
)


def test_a_device_is_of_its_pool() -> None:
    """Two drivers may use one pool name, so the pool's identity has both."""
    device = DeviceID(DriverName("d.io"), PoolName("p"), DeviceName("a"))
    assert str(device) == "d.io/p/a"
    assert device.pool_id == PoolID(DriverName("d.io"), PoolName("p"))


@pytest.mark.parametrize(
    ("namespace", "key", "text"),
    [("team-a", "team-a/gpus", "team-a/gpus"), ("", "default/gpus", "gpus")],
)
def test_a_name_without_a_namespace_is_in_default(
    namespace: str, key: str, text: str
) -> None:
    """As kubectl has it; a reference shows what was written."""
    assert object_key(namespace, "gpus") == key
    assert str(ClaimRef(Namespace(namespace), "gpus")) == text
