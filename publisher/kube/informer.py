"""Every object of a kind and then every change, over any interruption, for many.

`follow` lists once, then watches, and lists again when the history is lost; what went
away meanwhile is handed over as gone. The Informer follows each kind once, whoever
listens: a listener that is slow slows its kind down, never another. Keeps a version a
key and no object; must not know what objects mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from contextlib import aclosing

from publisher.kube.changes import Change, ChangePage
from runtime.kube.api import Json, KubernetesApi, WatchEvent
from runtime.kube.errors import (
    GoneError,
    NotFoundError,
    PermissionDeniedError,
    ThrottledError,
    UnavailableError,
)
from runtime.kube.kinds import Kind, key_of
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.retry import Outage
from runtime.run import Task
from runtime.waits import first_of, unless

_SHORT_S = 1.0
"""A watch that ends sooner is an outage: it would be opened in a tight loop."""
_ABSENT_S = 3.0

Listener = Callable[[ChangePage], Awaitable[None]]
Follow = Callable[[asyncio.Event], AsyncIterator[ChangePage]]
"""Lists and watches a kind until the event is set."""

log = get_logger(__name__)


class Informer:
    """Follows each kind once, for all who listen to it."""

    def __init__(
        self,
        follows: Mapping[str, Follow],
        *listeners: tuple[Collection[str], Listener],
    ) -> None:
        """`follows` is by kind; each listener is handed the pages of its kinds.

        Those of one kind are called one after the other, in the order given here.
        """
        self._follows = dict(follows)
        self._listeners = {
            kind: [listener for kinds, listener in listeners if kind in kinds]
            for kind in self._follows
        }
        self._unsynced = set(self._follows)
        self._refusals = Refusals()
        self.synced = asyncio.Event()
        """Set once every kind was handed over that was there at the start."""

    def tasks(self) -> dict[str, Task]:
        """Name the watches: one a kind, for as long as the service runs."""
        return {f"watch-{kind}": self._watch_of(kind) for kind in self._follows}

    def _watch_of(self, kind: str) -> Task:
        async def watch(stop: asyncio.Event) -> None:
            async for page in self._follows[kind](stop):
                for listener in self._listeners[kind]:
                    await self._hand_over(listener, page)
                if page.synced and kind in self._unsynced:
                    self._unsynced.discard(kind)
                    log.info("kind.synced", kind=kind)
                    if not self._unsynced:
                        self.synced.set()

        return watch

    async def _hand_over(self, listener: Listener, page: ChangePage) -> None:
        """Hand a page over; an object that cannot be handled is named and left out.

        Listeners take a change twice: those of the page that were taken before the one
        that failed come again, each alone.
        """
        if len(page.changes) < 2:
            name = "/".join(f"{c.kind}/{c.key}" for c in page.changes)
            with self._refusals.guard(name):
                await listener(page)
            return
        try:
            await listener(page)
        except Exception:  # noqa: BLE001 # noted below, with the object that raises it
            for change in page.changes:
                one = ChangePage((change,), page.synced)
                await self._hand_over(listener, one)


async def follow(
    api: KubernetesApi,
    kind: Kind,
    stop: asyncio.Event,
    *,
    field_selector: str = "",
    may_be_absent: bool = False,
    may_be_denied: bool = False,
) -> AsyncGenerator[ChangePage]:
    """Hand over all objects of a kind and then every change, until `stop` is set.

    An outage of the API server is waited out, a missing permission too, slowly; each
    is one line in the log when it begins and one when it ends. With `may_be_absent`
    a kind that is not served has no objects, and is followed once it is served; with
    `may_be_denied` the same holds of a kind that we may not read.

    Raises:
        NotFoundError: the kind is not served, or not any more.
        InvalidError: the selector is refused.
    """
    follower = _Follower(
        api,
        kind,
        stop,
        field_selector,
        may_be_absent=may_be_absent,
        may_be_denied=may_be_denied,
    )
    async with aclosing(follower.pages()) as pages:
        while (page := await unless(stop, anext(pages))) is not None:
            yield page


class _Follower:
    """One follower's place in the history of its kind."""

    def __init__(
        self,
        api: KubernetesApi,
        kind: Kind,
        stop: asyncio.Event,
        field_selector: str,
        *,
        may_be_absent: bool,
        may_be_denied: bool,
    ) -> None:
        self._api = api
        self._kind = kind
        self._stop = stop
        self._selector = field_selector
        self._may_be_absent = may_be_absent
        self._may_be_denied = may_be_denied
        self._outage = Outage(f"follow {kind.plural}")
        self._versions: dict[str, tuple[str, str]] = {}
        """The uid and resourceVersion that were handed over, by key."""
        self._place = ""
        """Where a watch goes on; empty: list first."""
        self._synced = False
        self._absent = False

    async def pages(self) -> AsyncGenerator[ChangePage]:
        """Yield pages for ever."""
        while True:
            steps = self._watch_objects() if self._place else self._list_objects()
            try:
                async with aclosing(steps) as pages:
                    async for page in pages:
                        yield page
            except NotFoundError:
                if not self._may_be_absent:
                    raise
                async for page in self._wait_absent():
                    yield page
            except GoneError as error:
                # The history that we would go on from is not kept: list again.
                self._place = ""
                await self._outage.wait(error, self._stop)
            except PermissionDeniedError as error:
                if self._may_be_denied:
                    for page in self._note_nothing():
                        yield page
                await self._outage.wait(error, self._stop)
            except (ThrottledError, UnavailableError) as error:
                await self._outage.wait(error, self._stop)

    async def _list_objects(self) -> AsyncGenerator[ChangePage]:
        """List, and hand over what was not handed over in its version."""
        missing = set(self._versions)
        token, complete = "", False
        while not complete:
            page = await self._api.list_page(
                self._kind, token, field_selector=self._selector
            )
            self._outage.note_success()
            changes = []
            for raw in page.items or ():
                key = key_of(raw)
                missing.discard(key)
                changes.extend(self._note_object(key, raw))
            token = page.token
            complete = not token
            if complete:
                # Whatever the whole list does not show went away meanwhile.
                changes.extend(self._note_gone(missing))
                self._place = page.resource_version
            was_synced = self._synced
            self._synced = self._synced or complete
            if changes or self._synced != was_synced:
                yield ChangePage(tuple(changes), self._synced)
        if self._absent:
            log.info("kind.served", kind=self._kind.name)
            self._absent = False

    async def _watch_objects(self) -> AsyncGenerator[ChangePage]:
        """Hand over what changes, until the watch ends."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        watch = self._api.watch(self._kind, self._place, field_selector=self._selector)
        async with aclosing(watch) as batches:
            async for batch in batches:
                self._outage.note_success()
                changes = [
                    change for event in batch for change in self._note_event(event)
                ]
                if changes:
                    yield ChangePage(tuple(changes), self._synced)
        if loop.time() - began_s < _SHORT_S:
            what = f"watch {self._kind.name}"
            raise UnavailableError(what, "ended as soon as it began")

    async def _wait_absent(self) -> AsyncGenerator[ChangePage]:
        """Hand over that the kind has no objects, and wait a while."""
        self._outage.note_success()
        for page in self._note_nothing():
            yield page
        if not self._absent:
            log.info("kind.absent", kind=self._kind.name)
        self._absent = True
        await first_of(self._stop, within_s=_ABSENT_S)

    def _note_nothing(self) -> Iterator[ChangePage]:
        """Note that no object can be seen; returns a page if that is news."""
        self._place = ""
        changes = tuple(self._note_gone(set(self._versions)))
        if changes or not self._synced:
            self._synced = True
            yield ChangePage(changes, synced=True)

    def _note_event(self, event: WatchEvent) -> list[Change]:
        """Go on from an event; returns its change, unless it is known."""
        version = event.object["metadata"]["resourceVersion"]
        self._place = version
        if event.type == "BOOKMARK":
            return []
        key = key_of(event.object)
        if event.type == "DELETED":
            return self._note_gone({key})
        return self._note_object(key, event.object)

    def _note_object(self, key: str, raw: Json) -> list[Change]:
        """Note an object's version; returns the change, unless it is known."""
        metadata = raw["metadata"]
        version = (metadata["uid"], metadata["resourceVersion"])
        if self._versions.get(key) == version:
            return []
        self._versions[key] = version
        return [Change(self._kind.name, key, raw)]

    def _note_gone(self, keys: set[str]) -> list[Change]:
        """Forget objects; returns a change for each that was handed over."""
        versions = [(key, self._versions.pop(key, None)) for key in sorted(keys)]
        name = self._kind.name
        return [
            Change(name, key, None, version[0]) for key, version in versions if version
        ]
