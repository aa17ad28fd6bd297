"""(layout of a pool, observed ResourceSlices of it) -> create, update or delete.

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
from publisher.slices.layout import PoolLayout, index_of, name_slice
from publisher.steps import Create, Delete, Step, Update

_Times = dict[tuple[DeviceName, str, str, str], str]


def plan_slices(
    layout: PoolLayout | None,
    observed: Iterable[ResourceSlice],
    *,
    now: str,
    owner: OwnerReference | None = None,
) -> tuple[Step[ResourceSlice], ...]:
    """Plan what makes the slices of one pool those of its layout; None: no such pool.

    `now` is RFC 3339; `owner` is the Node where it has a uid.
    """
    slices = sorted(observed, key=lambda slice_: slice_.metadata.name)
    if layout is None:
        return tuple(Delete(slice_) for slice_ in slices)
    # First match what is there to the places of the layout ...
    generation = max((slice_.spec.pool.generation for slice_ in slices), default=0)
    current = _match_slices(layout, slices)
    kept = {slice_.metadata.name for slice_ in current.values()}
    obsolete = [slice_ for slice_ in slices if slice_.metadata.name not in kept]
    # ... then say what each place should hold, in the generation that is there.
    times = _taint_times(slices)
    desired = [
        _date_taints(
            _build_slice(layout, index, current.get(index), generation, owner),
            times,
            now,
        )
        for index in range(len(layout.slices))
    ]
    changed = [
        index for index, slice_ in enumerate(desired) if current.get(index) != slice_
    ]
    if len(kept) == len(desired) and not obsolete and len(changed) <= 1:
        return tuple(Update(desired[index]) for index in changed)
    # More than one write: readers must not take half of them for the whole pool.
    generation = max(generation + 1, layout.generation)
    desired = [_with_generation(slice_, generation) for slice_ in desired]
    return (
        *(Delete(slice_) for slice_ in obsolete),
        *(Update(slice_) for index, slice_ in enumerate(desired) if index in current),
        *(
            Create(slice_)
            for index, slice_ in enumerate(desired)
            if index not in current
        ),
    )


def _match_slices(
    layout: PoolLayout, slices: Sequence[ResourceSlice]
) -> dict[int, ResourceSlice]:
    """Match slices to places; the newest wins, immutable fields must be right."""
    current: dict[int, ResourceSlice] = {}
    for slice_ in sorted(slices, key=lambda slice_: -slice_.spec.pool.generation):
        index = index_of(slice_.metadata.name)
        if index is None or index >= len(layout.slices) or index in current:
            continue
        spec = slice_.spec
        identity = (spec.driver, spec.pool.name, spec.node_name)
        if identity == (layout.driver, layout.name, layout.node):
            current[index] = slice_
    return current


def _build_slice(
    layout: PoolLayout,
    index: int,
    current: ResourceSlice | None,
    generation: int,
    owner: OwnerReference | None,
) -> ResourceSlice:
    """Build the slice of a place, with the metadata of the one that is there."""
    metadata = ObjectMeta(name=name_slice(index, layout))
    if current is not None:
        metadata = current.metadata
    owners = () if owner is None else (owner,)
    spec = layout.slices[index]
    pool = replace(
        spec.pool, generation=generation, resource_slice_count=len(layout.slices)
    )
    return ResourceSlice(
        metadata=replace(metadata, owner_references=owners),
        spec=replace(spec, pool=pool),
    )


def _with_generation(slice_: ResourceSlice, generation: int) -> ResourceSlice:
    pool = replace(slice_.spec.pool, generation=generation)
    spec: ResourceSliceSpec = replace(slice_.spec, pool=pool)
    return replace(slice_, spec=spec)


def _taint_times(slices: Iterable[ResourceSlice]) -> _Times:
    """When each taint was first seen, wherever in the pool its device stood."""
    return {
        _taint_key(device, taint): taint.time_added
        for slice_ in slices
        for device in slice_.spec.devices
        for taint in device.taints
        if taint.time_added is not None
    }


def _date_taints(slice_: ResourceSlice, times: _Times, now: str) -> ResourceSlice:
    """Give each taint the time at which it was first seen: now, if it is new."""
    devices = tuple(_date_device(device, times, now) for device in slice_.spec.devices)
    spec: ResourceSliceSpec = replace(slice_.spec, devices=devices)
    return replace(slice_, spec=spec)


def _date_device(device: Device, times: _Times, now: str) -> Device:
    taints = tuple(
        taint
        if taint.time_added is not None
        else replace(taint, time_added=times.get(_taint_key(device, taint), now))
        for taint in device.taints
    )
    return device if taints == device.taints else replace(device, taints=taints)


def _taint_key(device: Device, taint: DeviceTaint) -> tuple[DeviceName, str, str, str]:
    return device.name, taint.key, taint.value, taint.effect
