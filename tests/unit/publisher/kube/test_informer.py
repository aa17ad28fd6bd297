"""What one listener cannot handle of one object ends no watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from publisher.kube.changes import Change, ChangePage
from publisher.kube.informer import Informer

PAGE = ChangePage(
    tuple(Change("Pod", f"team-a/{name}", {}) for name in ("a", "hostile", "b")),
    synced=True,
)


async def follow(_: asyncio.Event) -> AsyncIterator[ChangePage]:
    """Hand one page over."""
    yield PAGE


async def test_an_object_that_cannot_be_handled_is_left_out_alone() -> None:
    """The others of its page come again one by one, and the next listener has all."""
    taken: list[str] = []
    others: list[int] = []

    async def take(page: ChangePage) -> None:
        for change in page.changes:
            if "hostile" in change.key:
                raise RecursionError("as whatever nobody has thought of")
            taken.append(change.key)

    async def count(page: ChangePage) -> None:
        others.append(len(page.changes))

    informer = Informer({"Pod": follow}, (["Pod"], take), (["Pod"], count))
    await informer.tasks()["watch-Pod"](asyncio.Event())
    assert set(taken) == {"team-a/a", "team-a/b"}
    assert others == [3]
    assert informer.synced.is_set()
