"""Paths of a driver's sockets, and stale ones that nobody answers.

As kubelet's own helper for drivers names them (k8s.io/dynamic-resource-allocation/
kubeletplugin): with a pod's uid each instance has sockets of its own, so that a new one
is there before the old one leaves.
"""

from __future__ import annotations

import socket
from base64 import urlsafe_b64encode
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from msgspec import Struct

from contracts.ids import DriverName
from runtime.log import get_logger

log = get_logger(__name__)

_MODE = 0o600
_HIDDEN = ".m"
_MAX_PATH = 107
"""Bytes of the path of a unix socket, without the end."""


class SocketPaths(Struct, frozen=True, kw_only=True):
    """The two sockets of one instance of a driver."""

    registration: Path
    """In the folder that kubelet watches."""
    plugin: Path

    @property
    def too_long(self) -> Path | None:
        """A path that is too long for a socket; None: neither is."""
        for path in (self.registration, self.plugin):
            if len(str(path).encode()) > _MAX_PATH:
                return path
        return None


def find_paths(kubelet: Path, driver: DriverName, instance: str) -> SocketPaths:
    """Name the sockets of an instance (a pod's uid; empty: there is one only)."""
    registry, folder = kubelet / "plugins_registry", kubelet / "plugins" / driver
    if not instance:
        return SocketPaths(
            registration=registry / f"{driver}-reg.sock", plugin=folder / "dra.sock"
        )
    both = _short_digest(f"{driver}\0{instance}", 16)
    names = (
        f"{driver}-{instance}-reg.sock",
        f"{driver}-{_short_digest(instance, 8)}-reg.sock",
        f"dra-{both}-reg.sock",
    )
    fitting = (name for name in names if len(str(registry / name)) <= _MAX_PATH)
    plugin = folder / f"dra-{instance}.sock"
    if len(str(plugin).encode()) > _MAX_PATH:
        plugin = folder / f"dra-{_short_digest(instance, 8)}.sock"
    return SocketPaths(registration=registry / next(fitting, names[-1]), plugin=plugin)


class OwnSocket:
    """A socket of ours: opened under a hidden name, and removed only while it is ours.

    gRPC removes the path that it opened, whoever has it by then: an agent that ends
    must not take the socket of the one that replaces it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hidden = path.with_name(f"{_HIDDEN}{token_hex(3)}")
        """Where it is opened; no longer than any of the paths. kubelet ignores it."""
        self._file: tuple[int, ...] | None = None

    def publish(self) -> None:
        """Give the open socket its path, in place of what has it.

        Raises:
            OSError: it cannot be had.
        """
        self.hidden.chmod(_MODE)
        self._file = _identify(self.hidden)
        self.hidden.replace(self.path)

    def remove(self) -> None:
        """Remove the path, if it is still that of this socket."""
        with suppress(OSError):
            if self._file is not None and _identify(self.path) == self._file:
                _remove(self.path)


def _identify(path: Path) -> tuple[int, ...]:
    """Return the file behind a path; the time is that of its creation."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns


def remove_stale(paths: SocketPaths, driver: DriverName) -> None:
    """Remove the sockets of instances that were killed.

    kubelet tries a socket that nobody answers ever more slowly, and a pod's uid does
    not come again. Blocks for a moment.
    """
    registry, folder = paths.registration.parent, paths.plugin.parent
    found = {
        paths.registration,
        *registry.glob(f"{driver}-*reg.sock"),
        *folder.glob("dra-*.sock"),
        folder / "dra.sock",
        *registry.glob(f"{_HIDDEN}*"),
        *folder.glob(f"{_HIDDEN}*"),
    }
    for path in found:
        if not is_answered(path):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a socket, if it is there; what is no socket is left alone."""
    with suppress(OSError):
        if path.is_socket():
            path.unlink()
            log.info("socket.removed", path=str(path))


def is_answered(path: Path) -> bool:
    """True unless nobody listens on a socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True


def _short_digest(text: str, size: int) -> str:
    digest = sha256(text.encode()).digest()[:size]
    return urlsafe_b64encode(digest).decode().rstrip("=")
