"""Which credentials are read, and what that costs where there is no kubeconfig."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtime.kube.credentials import read_credentials
from runtime.kube.errors import ClusterError


async def test_without_a_kubeconfig_it_is_the_service_account() -> None:
    """Whose absence is named."""
    with pytest.raises(ClusterError, match="service account of this pod"):
        await read_credentials("", "")


async def test_with_a_kubeconfig_it_is_that_one() -> None:
    """Also when it cannot be used."""
    with pytest.raises(ClusterError, match="kubeconfig /nowhere"):
        await read_credentials("/nowhere", "")


def test_in_a_pod_the_large_client_is_not_imported() -> None:
    """It would take more memory than an agent may have."""
    program = """
import asyncio, sys
from runtime.kube import api, credentials
try:
    asyncio.run(credentials.read_credentials("", ""))
except Exception:
    pass
sys.exit("kubernetes_asyncio" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
