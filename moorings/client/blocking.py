"""The same for programs without an event loop: each call waits for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

from moorings.client.live import AsyncSession, GangStatus, Remedy, connect_async

T = TypeVar("T")


@contextmanager
def connect(
    server: str = "",
    *,
    cluster: str = "local",
    user: str = "",
    password_file: str = "",
    ca_file: str = "",
) -> Iterator[Session]:
    """Open a session with a bus, as `connect_async` does.

    It has a thread with an event loop of its own, so it works in a notebook, too.

    Raises:
        BadInputError: nobody answers, or the user is refused.
        LocalStackError: no server is named, and no `moorings up` runs.
    """
    with _loop_in_thread() as loop:
        opening = connect_async(
            server,
            cluster=cluster,
            user=user,
            password_file=password_file,
            ca_file=ca_file,
        )
        session = Session(_wait(loop, opening.__aenter__()), loop)
        try:
            yield session
        finally:
            _wait(loop, opening.__aexit__(None, None, None))


class Session:
    """Gangs on a bus; made by `connect`. Each method is that of `AsyncSession`."""

    def __init__(self, session: AsyncSession, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop

    def submit(self, gang: Mapping[str, Any]) -> str:
        """Submit a Gang object; returns its uid."""
        return _wait(self._loop, self._session.submit(gang))

    def cancel(self, name: str, *, namespace: str | None = None) -> None:
        """Cancel a gang that is no longer wanted."""
        _wait(self._loop, self._session.cancel(name, namespace=namespace))

    def release(self, name: str, *, namespace: str | None = None) -> None:
        """Release a gang whose work is done."""
        _wait(self._loop, self._session.release(name, namespace=namespace))

    def gangs(self) -> list[GangStatus]:
        """List all gangs of the cluster, oldest first."""
        return _wait(self._loop, self._session.gangs())

    def find(self, name: str, *, namespace: str | None = None) -> GangStatus:
        """Find a gang by its name, `namespace/name`, uid or the start of its uid."""
        return _wait(self._loop, self._session.find(name, namespace=namespace))

    def follow(
        self, name: str, *, namespace: str | None = None
    ) -> Iterator[GangStatus]:
        """Follow a gang from now on, until it is over: each status that is new."""
        statuses = self._session.follow(name, namespace=namespace)
        try:
            while (status := _wait(self._loop, anext(statuses, None))) is not None:
                yield status
        finally:
            _wait(self._loop, statuses.aclose())

    def explain(
        self, name: str, *, namespace: str | None = None
    ) -> list[dict[str, Any]]:
        """Explain where a gang is, or why it waits, as `moorings explain -o json`."""
        return _wait(self._loop, self._session.explain(name, namespace=namespace))

    def what_helps(self, name: str, *, namespace: str | None = None) -> list[Remedy]:
        """Find the smallest change of each kind that would let a gang in."""
        return _wait(self._loop, self._session.what_helps(name, namespace=namespace))

    def what_if(self, name: str, **changes: Any) -> dict[str, Any]:
        """Solve a gang's last recorded batch again with changes, and compare."""
        return _wait(self._loop, self._session.what_if(name, **changes))


@contextmanager
def _loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="moorings", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Wait for work in the loop's thread; Ctrl-C cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()
