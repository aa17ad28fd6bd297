"""One CEL engine: expressions over `device`, compiled once, evaluated to a Verdict.

The engine is Google's, through cel-expr-python; everything that needs it is in this
folder. Runs inside the sandbox, because expressions are untrusted and the library can
abort the process. What Kubernetes offers and this does not is listed in docs/cel.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from cel_expr_python import cel

from contracts.device import Device, DeviceAttribute
from solver.cel.rewrite import bare_maps, named_domains
from solver.cel.values import (
    POOL,
    QUANTITY_TYPE,
    functions,
    quantity_value,
    semver_value,
)
from solver.problem.selectors import Verdict, is_broken

MAX_EXPRESSION = 10 * 1024
"""Bytes of one expression (DRA: CELSelectorExpressionMaxLength)."""
_LIBRARIES = """\
name: moorings
stdlib: {}
extensions:
- name: optional
- name: strings
- name: sets
- name: lists
- name: bindings
- name: two-var-comprehensions
"""
_MAP = cel.Type.Map(cel.Type.STRING, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
_AMOUNTS = cel.Type.Map(cel.Type.STRING, cel.Type.Map(cel.Type.STRING, QUANTITY_TYPE))
_VARIABLES = {
    "device.driver": cel.Type.STRING,
    "device.attributes": _MAP,
    "device.capacity": _AMOUNTS,
    "device.allowMultipleAllocations": cel.Type.BOOL,
    # The maps with real domains only: an unknown domain reads as an empty map, but
    # whoever looks at the map as a whole must not see it. See `bare_maps`.
    "device.attributes__seen": _MAP,
    "device.capacity__seen": _AMOUNTS,
}
_KEY = re.compile(r'Key not found in map : "([^"]*)"')
_TRUE, _FALSE = 1, 2


class Engine:
    """Compiles and evaluates; one per process, used by one thread."""

    def __init__(self) -> None:
        self._env = cel.NewEnv(
            POOL,
            config=cel.NewEnvConfigFromYaml(_LIBRARIES),
            variables=_VARIABLES,
            functions=functions(),
        )

    def evaluate(
        self, expression: str, devices: Iterable[tuple[str, Device]]
    ) -> list[Verdict]:
        """Judge (driver, device) pairs by one expression."""
        devices = list(devices)
        compiled = self._compile(expression)
        if isinstance(compiled, Verdict):
            return [compiled] * len(devices)
        domains = named_domains(expression)
        return [_judge(compiled, domains, driver, d) for driver, d in devices]

    def _compile(self, expression: str) -> Any:
        """Compile so that the value is never null, which would abort the process."""
        if len(expression.encode()) > MAX_EXPRESSION:
            limit = f"longer than {MAX_EXPRESSION} bytes"
            return Verdict(error=f"CEL compile error: {limit}")
        try:
            text = bare_maps(expression)
            compiled = self._env.compile(text)
            kind = compiled.return_type().name()
            if kind == "BOOL":
                return compiled
            if kind != "DYN":
                message = "must evaluate to bool or the unknown type"
                return Verdict(error=f"CEL compile error: {message}, not {kind}")
            inner = f"(\n{text}\n)"
            return self._env.compile(
                f"{inner} == true ? {_TRUE} : {inner} == false ? {_FALSE} : 0"
            )
        except RuntimeError as error:
            return Verdict(error=f"CEL compile error: {_plain(str(error))}")


def _judge(
    compiled: Any, domains: tuple[str, ...], driver: str, device: Device
) -> Verdict:
    if is_broken(device):
        return Verdict(error="CEL runtime error: unsupported attribute value")
    attributes = _by_domain(
        driver, ((name, _value(a)) for name, a in device.attributes.items())
    )
    capacity = _by_domain(
        driver,
        ((n, quantity_value(c.value.nano)) for n, c in device.capacity.items()),
    )
    unknown: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    try:
        result = compiled.eval(
            data={
                "device.driver": driver,
                "device.attributes": {**unknown, **attributes},
                "device.capacity": {**unknown, **capacity},
                "device.allowMultipleAllocations": bool(
                    device.allow_multiple_allocations
                ),
                "device.attributes__seen": attributes,
                "device.capacity__seen": capacity,
            }
        )
        kind, value = result.type().name(), result.value()
    except (RuntimeError, ValueError) as error:
        return Verdict(error=f"CEL runtime error: {_plain(str(error))}")
    if kind == "BOOL":
        return Verdict(value=bool(value))
    if kind == "INT" and value in (_TRUE, _FALSE):
        return Verdict(value=value == _TRUE)
    if kind == "INT":
        return Verdict(
            error="CEL runtime error: result of CEL expression could not be "
            "converted to bool"
        )
    return Verdict(error=f"CEL runtime error: {_plain(str(value))}")


def _by_domain(
    driver: str, items: Iterable[tuple[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Group qualified names; a bare one is of the driver's domain."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in items:
        domain, slash, identifier = name.rpartition("/")
        found.setdefault(domain if slash else driver, {})[identifier] = value
    return found


def _value(attribute: DeviceAttribute) -> Any:
    """Turn an attribute into a CEL value; lists come first, as upstream reads them."""
    if attribute.int_values is not None:
        return list(attribute.int_values)
    if attribute.bool_values is not None:
        return list(attribute.bool_values)
    if attribute.string_values is not None:
        return list(attribute.string_values)
    if attribute.version_values is not None:
        return [semver_value(text) for text in attribute.version_values]
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return attribute.string_value
    return semver_value(attribute.version_value or "")


def _plain(text: str) -> str:
    """Keep the first line of an engine's message, in Kubernetes' words."""
    found = _KEY.search(text)
    if found is not None:
        return f"no such key: {found[1]}"
    line = text.splitlines()[0] if text else "unknown error"
    line = re.sub(r"^[A-Z_]+: ", "", line)
    line = re.sub(r" \[[A-Z_]+\]$", "", line)
    return re.sub(r"^ERROR: <input>:", "", line)[:500]
