"""Several waits at once that end as one: all done, or the first error as it is.

`asyncio.TaskGroup` alone wraps errors in groups, which no `except` for one of them
catches; so a lost connection would end a service that knows how to wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Await all; at the first error the rest is cancelled and that error raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for item in work:
                group.create_task(item)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
