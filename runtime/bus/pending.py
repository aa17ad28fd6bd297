"""Requests that wait for their answers, and what fails them without one.

Stands beside the connection so that it only sends and delivers. Knows no client.
"""

from __future__ import annotations

import asyncio
import re
from typing import Generic, TypeVar

from runtime.errors import BusUnavailableError, NotAllowedError

T = TypeVar("T")
_FORBIDDEN = re.compile(r'permissions violation for publish to "([^"]+)"')
"""The words of the server, which the client library writes small."""


class PendingRequests(Generic[T]):
    """Each request by a token of its own."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[T]] = {}
        self._subjects: dict[str, str] = {}
        self._count = 0

    def add(self, subject: str) -> tuple[str, asyncio.Future[T]]:
        """Begin to wait; gives the token by which the answer will come."""
        self._count += 1
        token = str(self._count)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: self._forget_token(token))
        self._futures[token] = future
        self._subjects[token] = subject
        return token, future

    def answer(self, token: str, value: T) -> None:
        """Hand an answer to whoever waits for it, if anyone."""
        future = self._futures.get(token)
        if future is not None and not future.done():
            future.set_result(value)

    def fail_all(self) -> None:
        """Fail everything: the connection is lost."""
        for future in tuple(self._futures.values()):
            if not future.done():
                future.set_exception(BusUnavailableError("request", "connection lost"))
                future.exception()  # retrieved: nobody may be waiting for this one

    def fail_forbidden(self, words: str, user: str) -> None:
        """Fail what the server says is forbidden: it answers nothing else to that."""
        found = _FORBIDDEN.search(words.lower())
        if found is None:
            return
        for token, subject in tuple(self._subjects.items()):
            future = self._futures[token]
            if subject.lower() == found[1] and not future.done():
                future.set_exception(NotAllowedError(subject, user))
                future.exception()  # the same

    def _forget_token(self, token: str) -> None:
        del self._futures[token]
        del self._subjects[token]
