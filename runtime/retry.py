"""The one way to try again: growing pauses with jitter, and an end.

Wraps stamina once, so that every service waits alike and every retry is one event in
the log. What is watched is tried for ever: `Outage` has the same pauses without an end,
and two lines in the log. Knows nothing of what is tried.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from runtime import metrics
from runtime.log import get_logger
from runtime.waits import first_of

T = TypeVar("T")

ATTEMPTS = 10
BUDGET_S = 45.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_MOST_DOUBLINGS = 16

log = get_logger(__name__)


async def retry(
    what: str,
    attempt: Callable[[], Awaitable[T]],
    on: type[Exception] | tuple[type[Exception], ...],
    budget_s: float = BUDGET_S,
) -> T:
    """Await `attempt()` until it succeeds: at most 10 times or `budget_s`.

    An error with a `retry_after_s` that is not None is obeyed, and one with `is_final`
    is the last. The last error is raised as it is.
    """

    def pause(error: Exception) -> bool | float:
        if not isinstance(error, on) or getattr(error, "is_final", False):
            return False
        after: float | None = getattr(error, "retry_after_s", None)
        return True if after is None else after

    context = stamina.retry_context(
        on=pause,
        attempts=ATTEMPTS,
        timeout=budget_s,
        wait_initial=_FIRST_PAUSE_S,
        wait_max=_LONGEST_PAUSE_S,
        wait_jitter=0.5,
    ).with_name(what, (), {})
    async for block in context:
        with block:
            return await attempt()
    raise AssertionError("stamina ends with a result or an error")


class Outage:
    """The time in which something fails that is tried for ever.

    After each failure call `wait` (or `note_failure`, and wait that long), after each
    success `note_success`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._kind: type[Exception] | None = None
        self._began_s = 0.0
        self._failures = 0

    def note_failure(self, error: Exception) -> float:
        """Note a failure and return the seconds to wait before the next attempt.

        They grow with each; an error with a `retry_after_s` that is not None is
        obeyed. Logged once, and again only when it fails in another way.
        """
        if self._failures == 0:
            self._began_s = time.monotonic()
        if type(error) is not self._kind:
            self._kind = type(error)
            reason = str(error) or type(error).__name__
            log.warning("outage.began", what=self._what, reason=reason)
        pause_s: float | None = getattr(error, "retry_after_s", None)
        if pause_s is None:
            pause_s = min(_FIRST_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
        return pause_s * random.uniform(1.0, 1.5)  # noqa: S311 # spreads the load, hides nothing

    async def wait(self, error: Exception, stop: asyncio.Event) -> None:
        """Note a failure and wait before the next attempt, or until `stop`."""
        await first_of(stop, within_s=self.note_failure(error))

    def note_success(self) -> None:
        """Note that it worked; the next outage begins with a short pause."""
        if self._failures:
            lasted_s = round(time.monotonic() - self._began_s, 3)
            log.info("outage.ended", what=self._what, lasted_s=lasted_s)
        self._kind, self._failures = None, 0


def _log_retry(details: RetryDetails) -> None:
    metrics.RETRIES.inc()
    log.warning(
        "retry.scheduled",
        what=details.name,
        attempt=details.retry_num,
        wait_s=round(details.wait_for, 3),
        reason=str(details.caused_by),
    )


set_on_retry_hooks([_log_retry])
