"""Which clusters the controller of classic DRA takes, and what it says of others."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from publisher.classic.wiring import find_version, watch_version
from runtime.errors import ConfigError, RestartError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import PermissionDeniedError, UnavailableError

CONTEXTS = frozenset({"podschedulingcontexts", "resourceclaims"})
CLAIMS = frozenset({"resourceclaims"})
GATE = 'kubernetes_feature_enabled{name="DRAControlPlaneController",stage="ALPHA"}'


class _Api:
    """An API server that serves some versions, and has metrics."""

    def __init__(self, metrics: str | None, **served: frozenset[str]) -> None:
        self.served = served
        self._metrics = metrics

    async def fetch_served(self, group: str) -> dict[str, frozenset[str]]:
        assert group == "resource.k8s.io"
        if not self.served:
            raise UnavailableError("discover", "away")
        return self.served

    async def read_text(self, path: str) -> str:
        if self._metrics is None:
            raise PermissionDeniedError(f"read {path}", "no")
        return self._metrics


def api(metrics: str | None = "", **served: frozenset[str]) -> KubernetesApi:
    return cast("KubernetesApi", _Api(metrics, **served))


@pytest.mark.parametrize("metrics", [None, "", f"{GATE} 1\n"])
async def test_a_version_with_classic_dra_is_taken(metrics: str | None) -> None:
    """Metrics that are not ours to read keep nobody from beginning."""
    assert await find_version(api(metrics, v1alpha2=CONTEXTS)) == "v1alpha2"
    assert await find_version(api(metrics, v1alpha3=CONTEXTS)) == "v1alpha3"


async def test_a_newer_cluster_is_refused() -> None:
    """There nobody asks such a controller."""
    with pytest.raises(ConfigError, match="v1beta1, where nobody asks"):
        await find_version(api(v1beta1=CLAIMS, v1alpha3=CONTEXTS))


async def test_a_cluster_without_dra_is_refused() -> None:
    """What serves it is named."""
    with pytest.raises(ConfigError, match="v1alpha3=true"):
        await find_version(api(v1alpha3=CLAIMS))


async def test_a_gate_that_is_off_is_named() -> None:
    """Every claim would lose its controller without a word."""
    with pytest.raises(ConfigError, match="DRAControlPlaneController is off"):
        await find_version(api(f"# HELP\n{GATE} 0\n", v1alpha3=CONTEXTS))


async def test_an_upgrade_ends_the_process() -> None:
    """A start says what is wrong then, or takes the other version."""
    stop = asyncio.Event()
    newer = api(v1beta1=CLAIMS)
    with pytest.raises(RestartError, match="v1beta1"):
        await watch_version(newer, "v1alpha3", stop)
    with pytest.raises(RestartError, match="v1alpha3 by now"):
        await watch_version(api(v1alpha3=CONTEXTS), "v1alpha2", stop)


async def test_an_absent_api_server_is_waited_for() -> None:
    """It says nothing of versions."""
    stop = asyncio.Event()
    away = api()
    task = asyncio.create_task(watch_version(away, "v1alpha3", stop, 0.01))
    await asyncio.sleep(0.05)
    assert not task.done()
    stop.set()
    await task
