"""(wanted pool, observed ResourceSlices of it) -> create, update or delete.

Follows the slice controller of Kubernetes: slices are matched by the index in their
names; one changed slice is updated in place, any other change gives the whole pool the
next generation; deletes come first, then updates, then creates. Taints keep the time
at which they were first seen. Knows neither the sink nor the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from contracts.device import Device, DeviceTaint, ResourceSlice, ResourceSliceSpec
from contracts.ids import DeviceName
from contracts.meta import ObjectMeta, OwnerReference
from publisher.slices.layout import WantedPool, index_of, slice_name
from publisher.steps import Create, Delete, Step, Update

_Times = dict[tuple[DeviceName, str, str, str], str]


def plan_slices(
    wanted: WantedPool | None,
    observed: Iterable[ResourceSlice],
    *,
    now: str,
    owner: OwnerReference | None = None,
) -> tuple[Step[ResourceSlice], ...]:
    """Plan what makes the slices of one pool the wanted ones; None: no such pool.

    `now` is RFC 3339; `owner` is the Node where it has a uid.
    """
    found = sorted(observed, key=lambda item: item.metadata.name)
    if wanted is None:
        return tuple(Delete(item) for item in found)
    generation = max((item.spec.pool.generation for item in found), default=0)
    current = _current(wanted, found)
    kept = {item.metadata.name for item in current.values()}
    obsolete = [item for item in found if item.metadata.name not in kept]
    times = _times(found)
    desired = [
        _dated(
            _desired(wanted, index, current.get(index), generation, owner), times, now
        )
        for index in range(len(wanted.slices))
    ]
    changed = [
        index for index, item in enumerate(desired) if current.get(index) != item
    ]
    if len(kept) == len(desired) and not obsolete and len(changed) <= 1:
        return tuple(Update(desired[index]) for index in changed)
    generation = max(generation + 1, wanted.generation)
    desired = [_with_generation(item, generation) for item in desired]
    return (
        *(Delete(item) for item in obsolete),
        *(Update(item) for index, item in enumerate(desired) if index in current),
        *(Create(item) for index, item in enumerate(desired) if index not in current),
    )


def _current(
    wanted: WantedPool, found: Sequence[ResourceSlice]
) -> dict[int, ResourceSlice]:
    """Match slices to places; the newest wins, immutable fields must be right."""
    current: dict[int, ResourceSlice] = {}
    for item in sorted(found, key=lambda item: -item.spec.pool.generation):
        index = index_of(item.metadata.name)
        if index is None or index >= len(wanted.slices) or index in current:
            continue
        spec = item.spec
        identity = (spec.driver, spec.pool.name, spec.node_name)
        if identity == (wanted.driver, wanted.name, wanted.node):
            current[index] = item
    return current


def _desired(
    wanted: WantedPool,
    index: int,
    current: ResourceSlice | None,
    generation: int,
    owner: OwnerReference | None,
) -> ResourceSlice:
    metadata = ObjectMeta(name=slice_name(index, wanted))
    if current is not None:
        metadata = current.metadata
    owners = () if owner is None else (owner,)
    spec = wanted.slices[index]
    pool = replace(
        spec.pool, generation=generation, resource_slice_count=len(wanted.slices)
    )
    return ResourceSlice(
        metadata=replace(metadata, owner_references=owners),
        spec=replace(spec, pool=pool),
    )


def _with_generation(item: ResourceSlice, generation: int) -> ResourceSlice:
    pool = replace(item.spec.pool, generation=generation)
    spec: ResourceSliceSpec = replace(item.spec, pool=pool)
    return replace(item, spec=spec)


def _times(found: Iterable[ResourceSlice]) -> _Times:
    """When each taint was first seen, wherever in the pool its device stood."""
    return {
        _taint_key(device, taint): taint.time_added
        for item in found
        for device in item.spec.devices
        for taint in device.taints
        if taint.time_added is not None
    }


def _dated(item: ResourceSlice, times: _Times, now: str) -> ResourceSlice:
    devices = tuple(_dated_device(device, times, now) for device in item.spec.devices)
    spec: ResourceSliceSpec = replace(item.spec, devices=devices)
    return replace(item, spec=spec)


def _dated_device(device: Device, times: _Times, now: str) -> Device:
    taints = tuple(
        taint
        if taint.time_added is not None
        else replace(taint, time_added=times.get(_taint_key(device, taint), now))
        for taint in device.taints
    )
    return device if taints == device.taints else replace(device, taints=taints)


def _taint_key(device: Device, taint: DeviceTaint) -> tuple[DeviceName, str, str, str]:
    return device.name, taint.key, taint.value, taint.effect
