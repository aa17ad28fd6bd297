"""The settings of a source `sysfs` in the source file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from nodeagent.sources.sysfs.selection import LinkPolicy, Selection


class SysfsSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """Where a source `sysfs` looks, and what it offers."""

    driver: Annotated[str, Meta(min_length=1, max_length=63)]
    """The DRA driver of its devices."""
    select: Annotated[tuple[Selection, ...], Meta(min_length=1)]
    """What it offers; a device is offered once, whichever entries name it."""
    root: str = "/sys"
    """The tree; `/host/sys` where a container sees the host's there."""
    pci_ids: tuple[str, ...] = (
        "/usr/share/misc/pci.ids",
        "/usr/share/hwdata/pci.ids",
    )
    """Where names of vendors and products may be; the first that is there counts."""
    mountinfo: str = "/proc/self/mountinfo"
    """What is mounted; `/proc/1/mountinfo` where the host's pids are shared."""
    offer_used_disks: bool = False
    """Offer also disks that are mounted, have partitions, or are held by LVM."""
    link_down: LinkPolicy = LinkPolicy.BAD
    """Whether a link that is down is a fault of the device."""
    counters_s: Annotated[float, Meta(gt=0)] = 2.0
    """How often counters of errors are read."""
    rescan_s: Annotated[float, Meta(gt=0)] = 30.0
    """How often all devices are looked at again when nothing was heard of them."""
    hold_s: Annotated[float, Meta(ge=0)] = 600.0
    """How long a device counts as bad after a counter of errors has risen."""
