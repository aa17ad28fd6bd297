"""Opaque configuration of claims and classes that is meant for our drivers.

`DeviceParameters` is what their `parameters` hold; docs/schemas/device-parameters.json
is its schema. What a class says comes first, what the claim says goes over it, key by
key (KEP-3063, OpaqueDeviceConfiguration). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from contracts.allocation import DeviceAllocationConfiguration
from contracts.ids import DriverName
from contracts.names import API_VERSION
from nodeagent.errors import PrepareError

KIND = "DeviceParameters"
_SOURCES = ("FromClass", "FromClaim")

VariableName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)]
Text = Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=4096)]
ParameterName = Annotated[
    str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9._-]*$", max_length=63)
]
Variables = Annotated[dict[VariableName, Text], Meta(max_length=64)]
Parameters = Annotated[dict[ParameterName, Text | int | bool], Meta(max_length=64)]


class DeviceParameters(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Opaque parameters for drivers of Moorings in a class or a claim."""

    api_version: Literal["moorings.dev/v1alpha1"]
    kind: Literal["DeviceParameters"]
    env: Variables = {}
    """Variables that containers get with each device."""
    partition: Parameters = {}
    """Handed to the programs that set the device up and tear it down."""


class MergedParameters(Struct, frozen=True, kw_only=True):
    """The parameters of one request, merged from all its configurations."""

    env: dict[str, str] = {}
    partition: dict[str, str | int | bool] = {}


def make_schema() -> dict[str, Any]:
    """Return the JSON schema of `DeviceParameters`."""
    schema = msgspec.json.schema(DeviceParameters)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def merge(
    configs: Iterable[DeviceAllocationConfiguration], driver: DriverName, request: str
) -> MergedParameters:
    """Merge what holds for a request (`request` or `request/subrequest`).

    Raises:
        PrepareError: what is meant for this driver is not as its schema says.
    """
    env: dict[str, str] = {}
    partition: dict[str, str | int | bool] = {}
    for parameters in _in_order(tuple(configs), driver, request):
        env |= parameters.env
        partition |= parameters.partition
    return MergedParameters(env=env, partition=partition)


def _in_order(
    configs: tuple[DeviceAllocationConfiguration, ...], driver: DriverName, request: str
) -> Iterator[DeviceParameters]:
    base = request.partition("/")[0]
    for source in _SOURCES:
        for index, config in enumerate(configs):
            wanted = not config.requests or {request, base} & set(config.requests)
            if config.source == source and wanted:
                parameters = _read_parameters(index, config, driver)
                if parameters is not None:
                    yield parameters


def _read_parameters(
    index: int, config: DeviceAllocationConfiguration, driver: DriverName
) -> DeviceParameters | None:
    """Read a configuration; None: it is another driver's."""
    opaque = config.opaque
    if not isinstance(opaque, dict) or opaque.get("driver") != driver:
        return None
    field = f"status.allocation.devices.config[{index}].opaque.parameters"
    try:
        return msgspec.convert(opaque.get("parameters"), DeviceParameters)
    except (msgspec.ValidationError, RecursionError) as error:
        wanted = f"must be {KIND} of {API_VERSION} ({config.source})"
        raise PrepareError(f"{field}: {wanted}: {error}") from error
