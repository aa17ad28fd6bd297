"""The one way to try again: growing pauses with jitter, and an end.

Wraps stamina once, so that every service waits alike and every retry is one event in
the log. Knows nothing of what is tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from contracts.process.log import get_logger

T = TypeVar("T")

ATTEMPTS = 10
BUDGET_S = 45.0

log = get_logger(__name__)


async def retry(
    what: str,
    attempt: Callable[[], Awaitable[T]],
    on: type[Exception] | tuple[type[Exception], ...],
    budget_s: float = BUDGET_S,
) -> T:
    """Await `attempt()` until it succeeds: at most 10 times or `budget_s`.

    An error with a `retry_after_s` that is not None is obeyed. The last error is
    raised as it is.
    """

    def pause(error: Exception) -> bool | float:
        if not isinstance(error, on):
            return False
        after: float | None = getattr(error, "retry_after_s", None)
        return True if after is None else after

    context = stamina.retry_context(
        on=pause,
        attempts=ATTEMPTS,
        timeout=budget_s,
        wait_initial=0.1,
        wait_max=5.0,
        wait_jitter=0.5,
    ).with_name(what, (), {})
    async for block in context:
        with block:
            return await attempt()
    raise AssertionError("stamina ends with a result or an error")


def _log_retry(details: RetryDetails) -> None:
    log.warning(
        "retry.scheduled",
        what=details.name,
        attempt=details.retry_num,
        wait_s=round(details.wait_for, 3),
        reason=str(details.caused_by),
    )


set_on_retry_hooks([_log_retry])
