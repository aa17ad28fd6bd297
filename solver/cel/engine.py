"""One CEL engine: expressions over `device`, compiled once, evaluated to a Verdict.

The engine is Google's, through cel-expr-python; everything that needs it is in this
folder. Runs inside the sandbox, because expressions are untrusted and the library can
abort the process. What Kubernetes offers and this does not is listed in docs/cel.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cel_expr_python import cel

from contracts.device import Device, DeviceAttribute
from solver.cel import lists, maps, network, standard, text, values
from solver.cel.checked import CheckedExpression
from solver.cel.deep import write_shallow
from solver.cel.derived import refuse_type, replace_null, verdict_of_value
from solver.cel.literals import find_mismatch
from solver.cel.maps import name_insertion
from solver.cel.messages import POOL, QUANTITY_TYPE
from solver.cel.price import MAX_PRICE, price
from solver.cel.refusals import (
    compile_error,
    is_too_deep,
    runtime_error,
    too_complex,
)
from solver.cel.rewrite import WHOLE, rewrite
from solver.cel.values import exact_semver_value, quantity_value, semver_value
from solver.problem.attributes import DERIVED
from solver.selectors.footprint import MAX_EXPRESSION_BYTES, is_too_long
from solver.selectors.projection import find_fault
from solver.selectors.table import Verdict

_LIBRARIES = """\
name: moorings
stdlib:
  exclude_functions: [{excluded}]
extensions:
- name: optional
- name: strings
  version: 2
- name: sets
- name: lists
- name: bindings
- name: two-var-comprehensions
""".format(excluded=", ".join(f"{{name: '{n}'}}" for n in standard.REDECLARED))
_VARIABLES = {
    "device.driver": cel.Type.STRING,
    "device.attributes": cel.Type.Map(
        cel.Type.STRING, cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    ),
    "device.capacity": cel.Type.Map(
        cel.Type.STRING, cel.Type.Map(cel.Type.STRING, QUANTITY_TYPE)
    ),
    "device.allowMultipleAllocations": cel.Type.BOOL,
    WHOLE: cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
}
_TRUE, _FALSE = 1, 2


class Engine:
    """Compiles and evaluates; one per process, used by one thread."""

    def __init__(self) -> None:
        self._env = cel.NewEnv(
            POOL,
            config=cel.NewEnvConfigFromYaml(_LIBRARIES),
            variables=_VARIABLES,
            functions=[
                function
                for library in (standard, values, lists, maps, text, network)
                for function in library.declare_functions()
            ],
        )
        self._env.compile("true").eval(data={})  # the first one builds the libraries
        self._last: tuple[str, Any] | None = None
        self._is_whole = False
        """True if the last expression takes the device as one value."""

    def evaluate(self, expression: str, driver: str, device: Device) -> Verdict:
        """Evaluate an expression on a device; the last expression stays compiled.

        Give the devices of one expression in a row: compiling costs more than
        evaluating.
        """
        compiled = self.prepare(expression)
        if isinstance(compiled, Verdict):
            return compiled
        if expression.startswith(DERIVED):
            return _evaluate_derived(compiled, driver, device, is_whole=self._is_whole)
        return _evaluate_selector(compiled, driver, device, is_whole=self._is_whole)

    def prepare(self, expression: str) -> Any:
        """Compile an expression unless it was the last; a Verdict: it is none."""
        if self._last is None or self._last[0] != expression:
            self._last = (expression, self._compile(expression))
        return self._last[1]

    def _compile(self, expression: str) -> Any:
        """Compile so that the value is never null, which would abort the process."""
        if is_too_long(expression):
            return compile_error(f"longer than {MAX_EXPRESSION_BYTES} bytes")
        if expression.startswith(DERIVED):
            return self._compile_derived(expression.removeprefix(DERIVED))
        code = rewrite(expression)
        try:
            compiled = self._compile_checked(code)
            kind = compiled.return_type().name()
            if kind == "BOOL":
                return compiled
            if kind != "DYN":
                return compile_error(
                    f"must evaluate to bool or the unknown type, not {kind}"
                )
            return self._load(
                f"cel.bind(value__, (\n{code}\n), "
                f"value__ == true ? {_TRUE} : value__ == false ? {_FALSE} : 0)"
            )
        except (RuntimeError, ValueError, MemoryError) as error:
            return compile_error(str(error))

    def _compile_checked(self, code: str) -> Any:
        """Compile, and hold literals to Kubernetes' rule.

        Raises:
            ValueError: no expression, one with a literal of several types, or one
                that may cost too much.
        """
        code.encode()  # the engine aborts on what is no text
        compiled = self._load(code)
        checked = compiled.serialize()
        mismatch = find_mismatch(checked)
        if mismatch:
            raise ValueError(mismatch)
        cost = price(CheckedExpression.read(checked))
        if cost > MAX_PRICE:
            raise ValueError(too_complex(cost, MAX_PRICE))
        return compiled

    def _load(self, code: str) -> Any:
        self._is_whole = WHOLE in code
        try:
            compiled = self._env.compile(code)
        except RuntimeError as error:
            shallow = write_shallow(code) if is_too_deep(str(error)) else None
            if shallow is None:
                raise
            compiled = self._env.compile(shallow)
        return name_insertion(compiled.serialize(), self._env.deserialize) or compiled

    def _compile_derived(self, expression: str) -> Any:
        code = rewrite(expression)
        try:
            kind = self._compile_checked(code).return_type().name()
            refusal = refuse_type(kind)
            if refusal is None and kind == "DYN":
                return self._load(replace_null(code))
            return refusal or self._load(code)
        except (RuntimeError, ValueError, MemoryError) as error:
            return compile_error(str(error))


def _evaluate_derived(
    compiled: Any, driver: str, device: Device, *, is_whole: bool
) -> Verdict:
    """Evaluate the expression of a derived attribute on a device."""
    fault = find_fault(device)
    if fault:
        return runtime_error(fault)
    try:
        data = _activation_of(driver, device, exact=True, is_whole=is_whole)
        result = compiled.eval(data=data)
        if result.type().name() == "ERROR":
            return runtime_error(str(result.value()))
        return verdict_of_value(result.value())
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        return runtime_error(str(error))


def _evaluate_selector(
    compiled: Any, driver: str, device: Device, *, is_whole: bool
) -> Verdict:
    """Evaluate a selector on a device."""
    fault = find_fault(device)
    if fault:
        return runtime_error(fault)
    try:
        result = compiled.eval(data=_activation_of(driver, device, is_whole=is_whole))
        kind, value = result.type().name(), result.value()
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        return runtime_error(str(error))
    if kind == "BOOL":
        return Verdict(value=bool(value))
    if kind == "INT" and value in (_TRUE, _FALSE):
        return Verdict(value=value == _TRUE)
    if kind == "INT":
        return runtime_error("result of CEL expression could not be converted to bool")
    return runtime_error(str(value))


def _activation_of(
    driver: str, device: Device, *, exact: bool = False, is_whole: bool = False
) -> dict[str, Any]:
    """Lay out a device for the engine; `exact`: versions with their build metadata.

    `is_whole`: also as one value, which costs as much again.
    """
    version = exact_semver_value if exact else semver_value
    activation: dict[str, Any] = {
        "device.driver": driver,
        "device.attributes": _by_domain(
            driver,
            (
                (name, _value_of(attribute, version))
                for name, attribute in device.attributes.items()
            ),
        ),
        "device.capacity": _by_domain(
            driver,
            ((n, quantity_value(c.value.nano)) for n, c in device.capacity.items()),
        ),
        "device.allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }
    if is_whole:
        prefix = "device."
        activation[WHOLE] = {k.removeprefix(prefix): v for k, v in activation.items()}
    return activation


def _by_domain(
    driver: str, values_by_name: Iterable[tuple[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Group qualified names; a bare one is of the driver's domain, and yields."""
    by_domain: dict[str, dict[str, Any]] = {}
    for name, value in values_by_name:
        domain, slash, identifier = name.partition("/")
        if slash:
            by_domain.setdefault(domain, {})[identifier] = value
        else:
            by_domain.setdefault(driver, {}).setdefault(name, value)
    return by_domain


def _value_of(attribute: DeviceAttribute, version: Callable[[str], Any]) -> Any:
    """Turn an attribute into a CEL value; lists come first, as upstream reads them."""
    for listed in (
        attribute.int_values,
        attribute.bool_values,
        attribute.string_values,
    ):
        if listed is not None:
            return list(listed)
    if attribute.version_values is not None:
        return [version(text) for text in attribute.version_values]
    for single in (
        attribute.int_value,
        attribute.bool_value,
        attribute.string_value,
    ):
        if single is not None:
            return single
    return version(attribute.version_value or "")
