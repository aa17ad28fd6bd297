"""The auth callout as a process: keys, the API server, the bus, and its one task.

Replicas share the requests in a queue group; none knows of the others, and connections
that stand need none of them.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from authcallout.callout import Callout
from authcallout.config import AuthCalloutConfig
from authcallout.errors import KeyTextError
from authcallout.nkeys import AccountKey, CurveKey
from authcallout.reviews import Reviews
from runtime.bus.bus import Bus
from runtime.errors import ConfigError
from runtime.run import Task
from runtime.users import CALLOUT_SUBJECT
from runtime.wire import BusSettings

_GROUP = "authcallout"

K = TypeVar("K")


@asynccontextmanager
async def open_service(config: AuthCalloutConfig) -> AsyncIterator[dict[str, Task]]:
    """Open keys, API server and bus; close them in reverse.

    Raises:
        ConfigError: a key or the kubeconfig cannot be used.
    """
    issuer = _read_key("AUTHCALLOUT_ISSUER_FILE", config.issuer_file, AccountKey)
    curve = _read_key("AUTHCALLOUT_CURVE_FILE", config.curve_file, CurveKey)
    reviews = Reviews.open(config.kubeconfig, config.in_flight, config.review_s)
    settings = BusSettings.of(config, "authcallout")
    async with reviews as api, Bus.open(settings) as bus:
        await bus.wait_connected()
        callout = Callout(bus, api, config, issuer=issuer, curve=curve, clock=time.time)
        async with bus.serve(CALLOUT_SUBJECT, _GROUP, callout.take):
            # Answers what servers ask about connections, some at once.
            yield {"answer": callout.answer}


def _read_key(variable: str, file: str, kind: Callable[[str], K]) -> K:
    try:
        return kind(Path(file).read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError, KeyTextError) as error:
        raise ConfigError(variable, f"{file}: {error}") from error
