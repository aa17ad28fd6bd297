"""The one way from `python -m <service>` to a running service."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from runtime.config import read_config
from runtime.errors import ConfigError
from runtime.log import configure_logging, get_logger
from runtime.run import WRONG_VARIABLE, Task, new_fast_loop, run_service
from runtime.settings import ServiceConfig

C = TypeVar("C", bound=ServiceConfig)
log = get_logger(__name__)


def service_main(
    name: str,
    kind: type[C],
    open_service: Callable[[C], AbstractAsyncContextManager[Mapping[str, Task]]],
    new_loop: Callable[[], asyncio.AbstractEventLoop] = new_fast_loop,
) -> int:
    """Run a service until SIGTERM and return the exit code.

    Its variables begin with its name in capitals. 2: one of them is wrong, or there are
    arguments, which no service has.
    """
    prefix = f"{name.upper()}_"
    try:
        _refuse_arguments(sys.argv[1:], prefix)
        config = read_config(kind, prefix, os.environ)
    except ConfigError as error:
        configure_logging(name)
        log.error("service.failed", reason=str(error))  # noqa: TRY400 # says enough
        return WRONG_VARIABLE
    return run_service(
        name,
        lambda: open_service(config),
        health_address=config.health_address,
        new_loop=new_loop,
    )


def _refuse_arguments(arguments: Sequence[str], prefix: str) -> None:
    """Refuse arguments, as services read only variables.

    Raises:
        ConfigError: something is.
    """
    if arguments:
        raise ConfigError(
            arguments[0], f"takes no arguments; variables {prefix}* configure it"
        )
