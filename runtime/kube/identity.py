"""Protocol of an API server's address and our credentials for it."""

from __future__ import annotations

import ssl
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


class Credentials(Protocol):
    """Where an API server is and who we are to it."""

    @property
    def server(self) -> str:
        """The URL of the API server, without a slash at its end."""
        ...

    @property
    def server_name(self) -> str | None:
        """The name in the server's certificate, where that is not its host."""
        ...

    def tls(self) -> ssl.SSLContext:
        """Build a context of whom we trust, with our certificate if we have one.

        Raises:
            ClusterError: a certificate or key cannot be read.
        """
        ...

    def proxy(self) -> str | None:
        """Return the proxy to go through."""
        ...

    async def token(self) -> str | None:
        """Return the header by which we are known, if it is not by a certificate.

        Raises:
            ClusterError: it cannot be read any more.
        """
        ...

    def note_refusal(self) -> None:
        """Note that the API server does not know us: `token` reads anew."""
        ...


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """Build a context that trusts the authorities of a file; None: the system's.

    Raises:
        OSError: the file cannot be read, or holds no certificate.
    """
    context = ssl.create_default_context(cafile=ca_file)
    # Strict since Python 3.13; authorities that Kubernetes' own tools make do not
    # say all that it asks for, and no other client of Kubernetes asks.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def environment_proxy(server: str) -> str | None:
    """Return the proxy that the environment names for a server, if any."""
    parts = urlsplit(server)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
