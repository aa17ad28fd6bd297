"""Selectors over many devices of few kinds: projections, and what reaches the engine.

Every device has an id of its own and one of 12 distinct sets of values; 20 expressions
of the kind that classes and claims use. Measured: the looks, the evaluation of all
rows with nothing known and with all known, a sandbox's start, and its first selector.

    python -m benchmarks.solver.selectors [--size full] [--json FILE]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.report import Row, arguments, report
from contracts.device import Device, DeviceAttribute, DeviceCapacity
from contracts.ids import DeviceName
from contracts.quantity import Quantity
from solver.cel.evaluator import SelectorEvaluator
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project

T = TypeVar("T")
DRIVER = "gpu.example.com"
A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'
EXPRESSIONS = (
    f'device.driver == "{DRIVER}"',
    f'device.driver == "{DRIVER}" && {A}.type == "gpu"',
    f'{A}.model == "A100"',
    f'{A}.model in ["A100", "H100"]',
    f'{A}.model.matches("^[AH]100$")',
    f'{A}.model.lowerAscii().startsWith("a")',
    f'"model" in {A}',
    f"has({A}.healthy) && {A}.healthy",
    f"{A}.?index.orValue(0) >= 2",
    f"{A}.index % 2 == 0",
    f'{C}.memory.compareTo(quantity("40Gi")) >= 0',
    f'{C}.memory.isGreaterThan(quantity("60Gi"))',
    f"{C}.memory.asInteger() > 0",
    f'{A}.driverVersion.isGreaterThan(semver("550.0.0"))',
    f"{A}.driverVersion.major() == 580",
    f"{A}.links.exists(l, l == 1)",
    f'sets.contains({A}.links, [1]) && {A}.type == "gpu"',
    f"cel.bind(m, {A}.model, m == 'A100' || m == 'L40S')",
    'device.attributes["resource.kubernetes.io"].numaNode == 0',
    f'!("nope.example.com" in device.attributes) && {A}.model != "T4"',
)


def fleet(count: int) -> list[Device]:
    """Make devices of 12 kinds, each with a UUID and a PCI address of its own."""
    models = (("A100", "80Gi"), ("H100", "94Gi"), ("L40S", "48Gi"))
    return [
        Device(
            name=DeviceName(f"gpu-{number}"),
            attributes={
                "type": DeviceAttribute(string_value="gpu"),
                "model": DeviceAttribute(string_value=models[number % 3][0]),
                "index": DeviceAttribute(int_value=number % 4),
                "healthy": DeviceAttribute(bool_value=True),
                "driverVersion": DeviceAttribute(version_value="580.126.9"),
                "links": DeviceAttribute(int_values=(1, 2)),
                "uuid": DeviceAttribute(string_value=f"GPU-{number:08x}"),
                "resource.kubernetes.io/numaNode": DeviceAttribute(
                    int_value=number % 2
                ),
                "resource.kubernetes.io/pciBusID": DeviceAttribute(
                    string_value=f"0000:{number:06x}:00.0"
                ),
            },
            capacity={
                "memory": DeviceCapacity(value=Quantity.parse(models[number % 3][1]))
            },
        )
        for number in range(count)
    ]


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Run and measure in seconds."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def run(count: int) -> Row:
    """Measure one number of devices."""
    devices = fleet(count)
    rows = [(e, DRIVER, device) for device in devices for e in EXPRESSIONS]
    looks, looking = timed(
        lambda: {
            (e, project(footprint_of(e), driver, device)) for e, driver, device in rows
        }
    )
    with SelectorEvaluator() as evaluator:
        _, start = timed(lambda: evaluator.evaluate([("true", DRIVER, devices[0])]))
        _, first = timed(
            lambda: evaluator.evaluate(
                [(f'device.driver == "{DRIVER}" || false', DRIVER, devices[0])]
            )
        )
        before = evaluator.evaluations
        verdicts, cold = timed(lambda: evaluator.evaluate(rows))
        evaluations = evaluator.evaluations - before
        _, warm = timed(lambda: evaluator.evaluate(rows))
    faults = [verdict.error for verdict in verdicts if verdict.error]
    assert not faults, faults[0]
    return {
        "devices": count,
        "expressions": len(EXPRESSIONS),
        "distinct looks": len(looks),
        "looks s": looking,
        "nothing known s": cold,
        "all known s": warm,
        "evaluations": evaluations,
        "sandbox start ms": start * 1000,
        "first selector ms": first * 1000,
    }


def main() -> None:
    """Measure a small and a large fleet."""
    options = arguments(__doc__ or "")
    sizes = (6_212,) if options.size == "small" else (6_212, 80_000)
    report("selectors", options, [run(count) for count in sizes])


if __name__ == "__main__":
    main()
