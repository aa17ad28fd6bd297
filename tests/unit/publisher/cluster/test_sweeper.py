"""A claim is freed that held devices for nobody at two looks, and no other."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from publisher.cluster.observer import Observer
from publisher.cluster.sweeper import Sweeper
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ConflictError, UnavailableError
from runtime.kube.kinds import RESOURCE_CLAIM
from tests import builders
from tests.builders.plans import NOW
from tests.builders.pods import real_claim

KEY = f"{builders.NAMESPACE}/c"


class Api:
    """Notes which claims are freed; may answer with an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.freed: list[str] = []
        self._error = error

    async def patch(
        self, _kind: object, key: str, body: dict[str, Any], **_: str
    ) -> dict[str, Any]:
        """Answer a write."""
        self.freed.append(key)
        if self._error is not None:
            raise self._error
        return {"apiVersion": "v1", "kind": "Pod", "metadata": body["metadata"]}


class Sweep:
    """A sweeper with one claim to look at."""

    def __init__(self, error: Exception | None = None) -> None:
        async def changed(_groups: object) -> None:
            return

        self.api = Api(error)
        self.observer = Observer(RESOURCE_CLAIM, changed, now=lambda: NOW)
        self.sweeper = Sweeper(cast("KubernetesApi", self.api), self.observer, 60.0)

    def put(self, version: int, *reserved: str) -> None:
        """Let the claim be there, allocated, in this version."""
        held = builders.allocation()
        claim = real_claim("c", allocated=held, reserved=reserved, version=version)
        self.observer.view.apply_claim(KEY, claim)

    async def look(self) -> list[str]:
        """Look once; returns what was freed so far."""
        stop = asyncio.Event()
        asyncio.get_running_loop().call_soon(stop.set)
        await self.sweeper.sweep(stop)
        return self.api.freed


async def test_an_orphan_is_freed_at_the_second_look() -> None:
    """One look may come in the middle of an allocation."""
    sweep = Sweep()
    sweep.put(1)
    assert await sweep.look() == []
    assert await sweep.look() == [KEY]


async def test_a_claim_that_changed_in_between_is_looked_at_anew() -> None:
    """Somebody is at it."""
    sweep = Sweep()
    sweep.put(1)
    assert await sweep.look() == []
    sweep.put(2)
    assert await sweep.look() == []
    assert await sweep.look() == [KEY]


async def test_a_reserved_claim_is_no_orphan() -> None:
    """Whoever it is reserved for is not ours to know."""
    sweep = Sweep()
    sweep.put(1, "somebody")
    assert await sweep.look() == []
    assert await sweep.look() == []


async def test_an_error_does_not_end_the_looking() -> None:
    """The claim stays, and is tried again."""
    for error in (ConflictError("patch", "no"), UnavailableError("patch", "no")):
        sweep = Sweep(error)
        sweep.put(1)
        await sweep.look()
        assert await sweep.look() == [KEY]
        assert await sweep.look() == [KEY, KEY]
