"""Chooses how an API server is reached: a kubeconfig, or the pod's service account."""

from __future__ import annotations

from runtime.kube.identity import Credentials
from runtime.kube.service_account import ServiceAccount


async def read_credentials(kubeconfig: str, context: str) -> Credentials:
    """Read a kubeconfig (empty: the service account) and one of its contexts.

    Raises:
        ClusterError: it cannot be used.
    """
    if not kubeconfig:
        return ServiceAccount.read()
    # Imported where it is needed: in a pod nothing of it is.
    from runtime.kube.kubeconfig import Kubeconfig  # noqa: PLC0415

    return await Kubeconfig.read(kubeconfig, context)
