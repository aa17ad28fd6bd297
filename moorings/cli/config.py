"""The user's configuration file: what options of commands are by default.

`$MOORINGS_CONFIG`, else `moorings/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
Options and variables win over it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from moorings.errors import BadInputError

_PATHS = ("state-dir", "bus-password-file", "bus-ca-file")


class Config(Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a configuration file says; empty: nothing."""

    server: str = ""
    cluster: str = ""
    state_dir: str = ""
    bus_user: str = ""
    bus_password_file: str = ""
    bus_ca_file: str = ""

    @property
    def options(self) -> dict[str, str]:
        """The options of commands that it gives, by their parameters."""
        names = ("server", "cluster", "state_dir")
        return {name: value for name in names if (value := getattr(self, name))}


KEYS = tuple(field.encode_name for field in structs.fields(Config))


def find_config(environ: Mapping[str, str]) -> Path:
    """Return where the file is, or would be."""
    if given := environ.get("MOORINGS_CONFIG"):
        return Path(given)
    home = environ.get("XDG_CONFIG_HOME")
    folder = Path(home) if home else Path.home() / ".config"
    return folder / "moorings" / "config.toml"


def read_config(environ: Mapping[str, str] = os.environ) -> Config:
    """Read the file; without one nothing is configured.

    Paths in it begin in its folder.

    Raises:
        BadInputError: it cannot be read, or has what is no setting.
    """
    path = find_config(environ)
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text())
    except FileNotFoundError:
        if environ.get("MOORINGS_CONFIG"):
            raise BadInputError(str(path), "there is no such file") from None
        return Config()
    except OSError as error:
        raise BadInputError(str(path), str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise BadInputError(str(path), "is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(str(path), f"is not TOML: {error}") from error
    for key, value in values.items():
        if key not in KEYS:
            known = ", ".join(KEYS)
            raise BadInputError(str(path), f"{key}: unknown; the settings are {known}")
        if not isinstance(value, str):
            raise BadInputError(str(path), f"{key}: must be a string")
        if value and key in _PATHS:
            values[key] = str(path.absolute().parent / Path(value).expanduser())
    if values.get("server") and values.get("state-dir"):
        raise BadInputError(str(path), "server and state-dir exclude each other")
    return msgspec.convert(values, Config)
