"""A service's configuration: one frozen Struct from the variables with its prefix.

`read_config(SolverConfig, "SOLVER_", os.environ)` reads `SOLVER_LEASE_S` into
`lease_s`. A variable with the prefix that no field wants is refused, so a typing
mistake never becomes a default. Knows no service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from runtime.errors import ConfigError

T = TypeVar("T")

_LISTS = (msgspec.inspect.VarTupleType, msgspec.inspect.ListType)


def read_config(kind: type[T], prefix: str, environ: Mapping[str, str]) -> T:
    """Make a configuration; lists are separated by commas.

    Raises:
        ConfigError: a variable is unknown, missing or of the wrong type.
    """
    type_info = msgspec.inspect.type_info(kind)
    if not isinstance(type_info, msgspec.inspect.StructType):
        raise TypeError(f"{kind.__name__} is not a Struct")
    fields = {f"{prefix}{field.name.upper()}": field for field in type_info.fields}
    texts = {name: text for name, text in environ.items() if name.startswith(prefix)}
    for name in sorted(texts.keys() - fields.keys()):
        listed = ", ".join(sorted(fields))
        raise ConfigError(name, f"is unknown; the variables are {listed}")
    for name, field in fields.items():
        if field.required and name not in texts:
            raise ConfigError(name, "is missing")
    values = {
        fields[name].encode_name: _split_list(text)
        if isinstance(fields[name].type, _LISTS)
        else text
        for name, text in texts.items()
    }
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        reason, separator, path = str(error).rpartition(" - at `$.")
        if not separator:
            raise ConfigError(f"{prefix}*", str(error)) from error
        name = path.rstrip("`").partition("[")[0].upper()
        raise ConfigError(f"{prefix}{name}", reason) from error


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
