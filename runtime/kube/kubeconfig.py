"""Where an API server is and who we are to it, as a kubeconfig says.

The one place that imports kubernetes_asyncio, for what kubeconfigs mean: contexts,
tokens, certificates, programs that make tokens. Sends nothing.
"""

from __future__ import annotations

import ssl

from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config import ConfigException, load_kube_config

from runtime.kube.errors import ClusterError
from runtime.kube.identity import environment_proxy, trusting


class Kubeconfig:
    """One context of a kubeconfig."""

    def __init__(self, path: str, context: str, configuration: Configuration) -> None:
        self._path = path
        self._context = context
        self._configuration = configuration
        self._refused = False

    @classmethod
    async def read(cls, path: str, context: str) -> Kubeconfig:
        """Read a kubeconfig and one of its contexts; empty: the current one.

        Raises:
            ClusterError: it cannot be used.
        """
        return cls(path, context, await _load_configuration(path, context))

    @property
    def server(self) -> str:
        """The URL of the API server, without a slash at its end."""
        return str(self._configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """The name in the server's certificate, where that is not its host."""
        name: str | None = self._configuration.tls_server_name
        return name

    def tls(self) -> ssl.SSLContext:
        """Build a context of whom we trust, with our certificate if we have one.

        Raises:
            ClusterError: a certificate or key cannot be read.
        """
        settings = self._configuration
        try:
            context = trusting(settings.ssl_ca_cert)
            if settings.cert_file:
                context.load_cert_chain(settings.cert_file, settings.key_file)
        except OSError as error:
            raise ClusterError(_describe_file(self._path), str(error)) from error
        if not settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def proxy(self) -> str | None:
        """Return the proxy of the kubeconfig, else that of the environment."""
        if self._configuration.proxy:
            return str(self._configuration.proxy)
        return environment_proxy(self.server)

    async def token(self) -> str | None:
        """Return the header by which we are known, if it is not by a certificate.

        The kubeconfig is read again after its token was refused.

        Raises:
            ClusterError: it cannot be read any more.
        """
        if self._refused:
            self._refused = False
            self._configuration = await _load_configuration(self._path, self._context)
        return await self._configuration.get_api_key_with_prefix("BearerToken")

    def note_refusal(self) -> None:
        """Note that the API server does not know us: `token` reads anew."""
        self._refused = True


async def _load_configuration(path: str, context: str) -> Configuration:
    configuration = Configuration(api_key={})
    try:
        await load_kube_config(
            path,
            context or None,
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, OSError, ValueError) as error:
        raise ClusterError(_describe_file(path), str(error)) from error
    return configuration


def _describe_file(path: str) -> str:
    return f"kubeconfig {path}"
