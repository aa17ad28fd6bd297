"""Asks the API server who a token belongs to and what its user may do.

TokenReview and SubjectAccessReview, each one request. The one place of this service
that imports kubernetes_asyncio; its exceptions and aiohttp's stop here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientError
from kubernetes_asyncio.client import (
    ApiClient,
    ApiException,
    AuthenticationV1Api,
    AuthorizationV1Api,
)
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)

from authcallout.errors import ReviewError
from authcallout.grants import AccessQuestion
from authcallout.login import Identity
from runtime.errors import ConfigError

_GROUP = "moorings.dev"
_RESOURCE = "gangs"
_FAILURES = (ApiException, ClientError, TimeoutError, OSError, ValueError)


class Reviews:
    """Asks one API server."""

    def __init__(self, client: ApiClient, timeout_s: float) -> None:
        self._tokens = AuthenticationV1Api(client)
        self._access = AuthorizationV1Api(client)
        self._timeout_s = timeout_s

    @classmethod
    @asynccontextmanager
    async def open(
        cls, kubeconfig: str, in_flight: int, timeout_s: float
    ) -> AsyncIterator[Reviews]:
        """Prepare the connections; as the pod's service account without a kubeconfig.

        Raises:
            ConfigError: the kubeconfig cannot be used, or we are in no pod.
        """
        configuration = Configuration()
        try:
            if kubeconfig:
                await load_kube_config(
                    kubeconfig, client_configuration=configuration, persist_config=False
                )
            else:
                load_incluster_config(  # type: ignore[no-untyped-call] # has no types
                    client_configuration=configuration
                )
        except (ConfigException, OSError, ValueError) as error:
            raise ConfigError("AUTHCALLOUT_KUBECONFIG", str(error)) from error
        configuration.connection_pool_maxsize = in_flight
        # Strict since Python 3.13; authorities that Kubernetes' own tools make do not
        # say all that it asks for, and no other client of Kubernetes asks.
        configuration.disable_strict_ssl_verification = True
        async with ApiClient(configuration) as client:
            yield cls(client, timeout_s)

    async def review(self, token: str, audience: str) -> Mapping[str, Any]:
        """Give the status of a TokenReview.

        Raises:
            ReviewError: there is none now.
        """
        spec = {"token": token, "audiences": [audience]}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": spec,
        }
        return await self._create_review(
            "TokenReview", self._tokens.create_token_review, body
        )

    async def may(self, identity: Identity, question: AccessQuestion) -> bool:
        """Return True if the identity may do this with Gangs.

        Raises:
            ReviewError: there is no answer now.
        """
        attributes = {
            "group": _GROUP,
            "resource": _RESOURCE,
            "verb": question.verb,
            "namespace": question.namespace,
        }
        spec = {
            "user": identity.username,
            "uid": identity.uid,
            "groups": identity.groups,
            "extra": identity.extra,
            "resourceAttributes": attributes,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        create = self._access.create_subject_access_review
        status = await self._create_review("SubjectAccessReview", create, body)
        return status.get("allowed") is True and status.get("denied") is not True

    async def _create_review(
        self, what: str, create: Any, body: Any
    ) -> Mapping[str, Any]:
        """Create a review and give its status as JSON has it."""
        try:
            answer = await create(
                body, _request_timeout=self._timeout_s, _preload_content=False
            )
            async with answer:
                answer.raise_for_status()
                raw = await answer.json()
        except _FAILURES as error:
            reason = getattr(error, "reason", None) or str(error)
            reason = str(reason) or type(error).__name__
            raise ReviewError(what, reason[:200]) from error
        status = raw.get("status") if isinstance(raw, dict) else None
        return status if isinstance(status, dict) else {}
