"""What a node agent may say: its drivers, so many devices, and taints of ours.

A message comes from whoever speaks as the node. It becomes ResourceSlices, by which
kube-scheduler decides and kube-controller-manager ends pods; so what it says beyond
this installation's own is left out, each thing with its name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from contracts.announcing import Refusal, limit_drivers
from contracts.device import Device, DeviceTaint, ResourcePool
from contracts.ids import DriverName
from contracts.messages import (
    MAX_NODE_DEVICES,
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
)
from contracts.names import OURS
from publisher.config import PublisherConfig

WorstEffect = Literal["NoSchedule", "NoExecute"]
NO_SCHEDULE: WorstEffect = "NoSchedule"
NO_EXECUTE: WorstEffect = "NoExecute"
_NAMED = 5
"""So many refusals of one message are named."""


class AnnouncementLimits(Struct, frozen=True, kw_only=True):
    """What this installation lets node agents say."""

    drivers: frozenset[DriverName] = frozenset()
    """Drivers of their devices; none named: any."""
    worst_effect: WorstEffect = NO_SCHEDULE
    """Effects of their taints; `NoExecute` ends the pods that use the device."""

    @classmethod
    def of(cls, config: PublisherConfig) -> AnnouncementLimits:
        """Take the limits from the configuration."""
        return cls(
            drivers=frozenset(map(DriverName, config.agent_drivers)),
            worst_effect=config.worst_effect,
        )

    def limit_inventory(
        self, message: DevicesAnnounced
    ) -> tuple[DevicesAnnounced, tuple[Refusal, ...]]:
        """Return what is taken of an inventory, and what is not."""
        message, refused = limit_drivers(message, self.drivers)
        pools: list[ResourcePool] = []
        refusals = list(refused)
        count = 0
        for pool in message.pools:
            count += len(pool.devices)
            field = f"pools[{pool.driver}/{pool.name}].devices"
            if count > MAX_NODE_DEVICES:
                reason = f"the node has more than {MAX_NODE_DEVICES} devices"
                refusals.append(Refusal(field, reason))
                continue
            devices = tuple(
                self._limit_device(device, field, refusals) for device in pool.devices
            )
            pools.append(replace(pool, devices=devices))
        return replace(message, pools=tuple(pools)), _shorten_refusals(refusals)

    def limit_health(
        self, message: HealthJudged
    ) -> tuple[HealthJudged, tuple[Refusal, ...]]:
        """Return what is taken of a judgement, and what is not."""
        refusals: list[Refusal] = []
        devices: list[DeviceHealth] = []
        for judged in message.devices[:MAX_NODE_DEVICES]:
            field = f"devices[{judged.device}]"
            taints = self._limit_taints(judged.taints, field, refusals)
            devices.append(replace(judged, taints=taints))
        if len(message.devices) > MAX_NODE_DEVICES:
            refusals.append(Refusal("devices", f"more than {MAX_NODE_DEVICES}"))
        return replace(message, devices=tuple(devices)), _shorten_refusals(refusals)

    def _limit_device(
        self, device: Device, field: str, refusals: list[Refusal]
    ) -> Device:
        if not device.taints:
            return device
        field = f"{field}[{device.name}]"
        return replace(
            device, taints=self._limit_taints(device.taints, field, refusals)
        )

    def _limit_taints(
        self, taints: Iterable[DeviceTaint], field: str, refusals: list[Refusal]
    ) -> tuple[DeviceTaint, ...]:
        return tuple(self._iterate_taints(taints, f"{field}.taints", refusals))

    def _iterate_taints(
        self, taints: Iterable[DeviceTaint], field: str, refusals: list[Refusal]
    ) -> Iterator[DeviceTaint]:
        for taint in taints:
            path = f"{field}[{taint.key}]"
            if not taint.key.startswith(OURS):
                refusals.append(Refusal(f"{path}.key", f"must begin with {OURS}"))
                continue
            if taint.effect == NO_EXECUTE != self.worst_effect:
                reason = f"{NO_EXECUTE} is treated as {NO_SCHEDULE}"
                refusal = f"{reason} (PUBLISHER_WORST_EFFECT)"
                refusals.append(Refusal(f"{path}.effect", refusal))
                taint = replace(taint, effect=NO_SCHEDULE)  # noqa: PLW2901 # as it is taken
            yield taint


def _shorten_refusals(refusals: list[Refusal]) -> tuple[Refusal, ...]:
    """Keep the first of many."""
    if len(refusals) <= _NAMED:
        return tuple(refusals)
    rest = len(refusals) - _NAMED
    return (*refusals[:_NAMED], Refusal("$", f"{rest} more of it are ignored"))
