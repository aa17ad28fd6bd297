"""Where an API server is and who we are to it, from a kubeconfig or a service account.

The one place that imports kubernetes_asyncio, for what kubeconfigs mean: contexts,
tokens, certificates, programs that make tokens. Sends nothing.
"""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)

from runtime.kube.errors import ClusterError


class Credentials:
    """What one kubeconfig says, or the service account of the pod we run in."""

    def __init__(
        self, kubeconfig: str, context: str, configuration: Configuration
    ) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration = configuration
        self._refused = False

    @classmethod
    async def read(cls, kubeconfig: str, context: str) -> Credentials:
        """Read a kubeconfig (empty: the service account) and one of its contexts.

        Raises:
            ClusterError: it cannot be used.
        """
        return cls(kubeconfig, context, await _load(kubeconfig, context))

    @property
    def server(self) -> str:
        """The URL of the API server, without a slash at its end."""
        return str(self._configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """Whom the server's certificate must name, where that is not its host."""
        name: str | None = self._configuration.tls_server_name
        return name

    def tls(self) -> ssl.SSLContext:
        """Build a context of whom we trust, with our certificate if we have one.

        Raises:
            ClusterError: a certificate or key cannot be read.
        """
        settings = self._configuration
        try:
            context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
            if settings.cert_file:
                context.load_cert_chain(settings.cert_file, settings.key_file)
        except OSError as error:
            raise ClusterError(_describe(self._kubeconfig), str(error)) from error
        # Strict since Python 3.13; authorities that Kubernetes' own tools make do not
        # say all that it asks for, and no other client of Kubernetes asks.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def proxy(self) -> str | None:
        """Return the proxy of the kubeconfig, else that of the environment."""
        if self._configuration.proxy:
            return str(self._configuration.proxy)
        parts = urlsplit(self.server)
        if proxy_bypass(parts.hostname or ""):
            return None
        return getproxies().get(parts.scheme)

    async def token(self) -> str | None:
        """Return the header by which we are known, if it is not by a certificate.

        A service account's token is read again every minute, and a kubeconfig after
        its token was refused.
        """
        if self._refused and self._kubeconfig:
            self._refused = False
            self._configuration = await _load(self._kubeconfig, self._context)
        return await self._configuration.get_api_key_with_prefix("BearerToken")

    def note_refusal(self) -> None:
        """Note that the API server does not know us: `token` reads anew."""
        self._refused = True


async def _load(kubeconfig: str, context: str) -> Configuration:
    configuration = Configuration(api_key={})
    try:
        if kubeconfig:
            await load_kube_config(
                kubeconfig,
                context or None,
                client_configuration=configuration,
                persist_config=False,
            )
        else:
            load_incluster_config(  # type: ignore[no-untyped-call] # has no types
                client_configuration=configuration
            )
    except (ConfigException, OSError, ValueError) as error:
        raise ClusterError(_describe(kubeconfig), str(error)) from error
    return configuration


def _describe(kubeconfig: str) -> str:
    return f"kubeconfig {kubeconfig}" if kubeconfig else "service account of this pod"
