"""Ports on loopback for programs that are started here."""

from __future__ import annotations

import random
import socket

from moorings.errors import LocalServerError

_PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections: ours stay free until
they are listened on, and between two starts."""
_ATTEMPTS = 100


def free_port() -> int:
    """Find a port on loopback that nobody uses and the kernel gives to nobody.

    Raises:
        LocalServerError: there is none.
    """
    for port in random.sample(_PORTS, _ATTEMPTS):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise LocalServerError(f"no free port in {_ATTEMPTS} attempts")
