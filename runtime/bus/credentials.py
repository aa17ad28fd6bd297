"""Credentials of a connection, read again for each, as files may be replaced.

A password may be a token of Kubernetes, which kubelet replaces before it expires.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

from runtime.wire import BusSettings


class BusCredentials(NamedTuple):
    """The CA to trust, and the user to connect as."""

    trusted: ssl.SSLContext | None
    login: str
    password: str | None


def read_credentials(settings: BusSettings) -> BusCredentials:
    """Read whom to trust and our password.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is no text.
    """
    file = settings.ca_file
    trusted = ssl.create_default_context(cafile=file) if file else None
    if not settings.password_file:
        return BusCredentials(trusted, settings.user, None)
    text = Path(settings.password_file).read_text(encoding="utf-8").strip()
    login, _, password = text.rpartition(":")
    return BusCredentials(trusted, login or settings.user, password)
