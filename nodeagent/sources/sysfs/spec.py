"""The settings of a source `sysfs` in the sources file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nodeagent.sources.source_spec import DeviceSourceSpec, Seconds
from nodeagent.sources.sysfs.selection import LinkPolicy, PciSelection


class SysfsSpec(DeviceSourceSpec, frozen=True, kw_only=True, tag="sysfs"):
    """Where a source `sysfs` looks, and what it offers."""

    select: Annotated[tuple[PciSelection, ...], Meta(min_length=1, max_length=64)]
    """Devices to offer; one that several entries match is offered once."""
    root: str = "/sys"
    """The tree; `/host/sys` where a container sees the host's there."""
    pci_ids: Annotated[tuple[str, ...], Meta(max_length=16)] = (
        "/usr/share/misc/pci.ids",
        "/usr/share/hwdata/pci.ids",
    )
    """Where names of vendors and products may be; the first that is there counts."""
    mountinfo: str = "/proc/self/mountinfo"
    """File of mounts; `/proc/1/mountinfo` where the host's pids are shared."""
    offer_used_disks: bool = False
    """Offer also disks that are mounted, have partitions, or are held by LVM."""
    link_down: LinkPolicy = LinkPolicy.BAD
    """How to treat a link of the device that is down."""
    counters_seconds: Seconds = 2.0
    """How often counters of errors are read."""
    rescan_seconds: Seconds = 30.0
    """How often all devices are read again without an event."""
    hold_seconds: Annotated[float, Meta(ge=0)] = 600.0
    """How long a device counts as bad after a counter of errors has risen."""
