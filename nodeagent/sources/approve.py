"""Checks a source's listing: accepts some devices and refuses others.

The one check between a source and the bus: each device as the API server would want it,
names that are there once, no pool but the source's own. A device that was announced and
cannot be taken as it is now stays as it was, until the source leaves it out. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from contracts.counts import counted
from contracts.device import Device, DeviceAttribute, ResourcePool
from contracts.ids import DeviceID, PoolID
from contracts.messages import MAX_NODE_DEVICES
from contracts.validate.devices import check_counter_set, check_device
from nodeagent.inventory import NodeDevices


class Approved(Struct, frozen=True, kw_only=True):
    """A listing as it may be announced."""

    devices: NodeDevices
    refusals: Mapping[DeviceID, str]
    """Devices that are left out, or kept as they were, each with field and rule."""


def approve(
    listed: NodeDevices,
    last: NodeDevices | None,
    only: PoolID | None,
    added: Mapping[str, DeviceAttribute],
) -> Approved:
    """Take a listing as far as it can be announced, with attributes added to all.

    `last` is what was taken before, `only` the one pool that it may have.

    Raises:
        ValueError: nothing of it can be taken; says why.
    """
    earlier = {} if last is None else _index_devices(last)
    count = len(listed.device_ids)
    if count > MAX_NODE_DEVICES:
        raise ValueError(f"{counted(count, 'device')}, more than {MAX_NODE_DEVICES}")
    refusals: dict[DeviceID, str] = {}
    pools: list[ResourcePool] = []
    for pool in listed.pools:
        pool_id = PoolID(pool.driver, pool.name)
        if only not in (None, pool_id):
            raise ValueError(f"pool {pool_id}: must be {only}")
        for index, counter_set in enumerate(pool.shared_counters):
            for violation in check_counter_set(counter_set, f"sharedCounters[{index}]"):
                raise ValueError(f"pool {pool_id}: {violation}")
        pools.append(_approve_pool(pool, earlier, added, refusals))
    return Approved(
        devices=structs.replace(listed, pools=tuple(pools)), refusals=refusals
    )


def _approve_pool(
    pool: ResourcePool,
    earlier: Mapping[DeviceID, Device],
    added: Mapping[str, DeviceAttribute],
    refusals: dict[DeviceID, str],
) -> ResourcePool:
    taken: dict[DeviceID, Device] = {}
    for device in pool.devices:
        device_id = DeviceID(pool.driver, pool.name, device.name)
        if device_id in taken:
            refusals[device_id] = "name: two devices have it"
            continue
        whole = _add_attributes(device, added)
        refusal = next(iter(check_device(whole, "", selects_nodes=False)), None)
        if refusal is None:
            taken[device_id] = whole
            continue
        refusals[device_id] = str(refusal).removeprefix(".")
        if device_id in earlier:
            taken[device_id] = earlier[device_id]
    return structs.replace(pool, devices=tuple(taken.values()))


def _add_attributes(device: Device, added: Mapping[str, DeviceAttribute]) -> Device:
    if not added:
        return device
    return structs.replace(device, attributes={**device.attributes, **added})


def _index_devices(devices: NodeDevices) -> dict[DeviceID, Device]:
    return {
        DeviceID(pool.driver, pool.name, device.name): device
        for pool in devices.pools
        for device in pool.devices
    }
