"""A service as a command: the variables that set it up, and becoming it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from msgspec import NODEFAULT, Struct, structs


def list_variables(config: type[Struct], prefix: str) -> Iterator[str]:
    """List the variables of a service with their defaults."""
    for field in structs.fields(config):
        variable = f"{prefix}_{field.name.upper()}"
        default = field.default
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        yield (
            f"{variable}={default}"
            if default is not NODEFAULT
            else f"{variable} (needed)"
        )


def run_module(module: str) -> None:
    """Become a service: this process is no command line any more."""
    os.execv(sys.executable, [sys.executable, "-m", module])  # noqa: S606  # our own module
