"""The service account of the pod we run in, as kubelet mounts it.

Without kubernetes_asyncio, whose import alone takes 60 MiB: an agent on every node has
less than that for all it does. Sends nothing.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from time import monotonic

from runtime.kube.errors import ClusterError
from runtime.kube.identity import environment_proxy, trusting

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_FRESH_S = 60.0
_WHOM = "service account of this pod"


class ServiceAccount:
    """A projected token and the API server's address in the environment.

    kubelet replaces the token long before it expires; it is read again every minute,
    and after the API server refused it.
    """

    def __init__(self, server: str, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._token = ""
        self._read_at_s: float | None = None

    @classmethod
    def read(cls, folder: Path = FOLDER) -> ServiceAccount:
        """Read where the API server is; the token and its authority must be there.

        Raises:
            ClusterError: we do not run in a pod, or without its service account.
        """
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            reason = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
            raise ClusterError(_WHOM, reason)
        shown = f"[{host}]" if ":" in host else host
        account = cls(f"https://{shown}:{port}", folder)
        account._read_token()
        account.tls()
        return account

    @property
    def server(self) -> str:
        """The URL of the API server, without a slash at its end."""
        return self._server

    @property
    def server_name(self) -> None:
        """The certificate names the server's host."""

    def tls(self) -> ssl.SSLContext:
        """Build a context that trusts the cluster's authority.

        Raises:
            ClusterError: it cannot be read.
        """
        try:
            return trusting(str(self._folder / "ca.crt"))
        except OSError as error:
            raise ClusterError(_WHOM, f"ca.crt: {error}") from error

    def proxy(self) -> str | None:
        """Return the proxy of the environment."""
        return environment_proxy(self._server)

    async def token(self) -> str:
        """Return the header by which we are known.

        Raises:
            ClusterError: the token cannot be read any more.
        """
        if self._read_at_s is None or monotonic() - self._read_at_s > _FRESH_S:
            self._read_token()
        return f"Bearer {self._token}"

    def note_refusal(self) -> None:
        """Note that the API server does not know us: `token` reads anew."""
        self._read_at_s = None

    def _read_token(self) -> None:
        try:
            token = (self._folder / "token").read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise ClusterError(_WHOM, f"token: {error}") from error
        if not token:
            raise ClusterError(_WHOM, "token: the file is empty")
        self._token = token
        self._read_at_s = monotonic()
