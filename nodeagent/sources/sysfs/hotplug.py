"""Hears from the kernel that devices came, went or changed, through libudev.

The kernel's own events, not those of udevd: they reach containers, and need no daemon.
Where pyudev or libudev is missing, or no such socket may be opened, nothing is heard,
and what changes is seen by looking again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.log import get_logger

if TYPE_CHECKING:
    import pyudev

log = get_logger(__name__)

_SUBSYSTEMS = ("pci", "net", "block", "nvme", "infiniband", "accel", "drm")
_MAX_DRAINED = 4096


class HotPlug:
    """Pending hotplug events of the kernel."""

    def __init__(self, monitor: pyudev.Monitor | None) -> None:
        self._monitor = monitor

    @property
    def hears(self) -> bool:
        """True if the kernel's events can be heard."""
        return self._monitor is not None

    def happened(self) -> bool:
        """True if an event came since the last call; never waits."""
        if self._monitor is None:
            return False
        count = 0
        try:
            while count < _MAX_DRAINED and self._monitor.poll(timeout=0) is not None:
                count += 1
        except OSError:  # more happened than the socket holds
            return True
        return count > 0


def open_hotplug() -> HotPlug:
    """Begin to hear, if that can be done here."""
    try:
        import pyudev  # noqa: PLC0415 # optional, and a few MiB

        monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        for subsystem in _SUBSYSTEMS:
            monitor.filter_by(subsystem)
        monitor.start()
    except (ImportError, OSError) as error:
        log.info("hotplug.unheard", reason=str(error))
        return HotPlug(None)
    return HotPlug(monitor)
