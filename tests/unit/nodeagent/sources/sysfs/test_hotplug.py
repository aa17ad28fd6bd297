"""The kernel's own events, where they can be heard."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nodeagent.sources.sysfs.hotplug import HotPlug, open_hotplug

WITHIN_S = 30.0


def find_uevent() -> Path | None:
    """Return a PCI device's file that makes the kernel repeat an event."""
    for path in sorted(Path("/sys/bus/pci/devices").glob("*/uevent")):
        try:
            with path.open("w"):
                return path
        except OSError:
            return None
    return None


def test_an_event_of_the_kernel_is_heard_once() -> None:
    """Asked for by writing `change`, as `udevadm trigger` does: nothing changes."""
    uevent = find_uevent()
    if uevent is None:
        pytest.skip("events of devices are for root, and /sys is to be writable")
    hotplug = open_hotplug()
    if not hotplug.hears:
        pytest.skip("libudev is not installed")
    hotplug.happened()
    uevent.write_text("change")
    ends_s = time.monotonic() + WITHIN_S
    while not hotplug.happened():
        assert time.monotonic() < ends_s, "the event was not heard"
    assert not hotplug.happened()


def test_without_libudev_nothing_is_heard() -> None:
    assert not HotPlug(None).hears
    assert not HotPlug(None).happened()
