"""Which devices of a pool may serve which kind of request.

Selectors are read from the recorded table, never evaluated. Sets of devices are
integers, one bit a device in pool order, so that a pool is one word. Results are
remembered on the pool's part: a pool that did not change is not looked at again.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.claim import DeviceToleration
from contracts.device import Device, DeviceTaint
from solver.problem.demand import RequestKind
from solver.problem.reads import reads
from solver.problem.selectors import Look, SelectorTable, look
from solver.snapshot.parts import Page, Part, PoolPart, UsePart

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
OWNED_TAINT = "moorings.dev/owned"
"""The taint that keeps kube-scheduler off our devices; it is not meant for us."""


class SelectorFault(Struct, frozen=True):
    """A selector that fails on a device."""

    device: int
    selector: int
    """Index into the request kind's selectors."""
    error: str


class Selected(Struct, frozen=True):
    """The devices of a pool that pass a list of selectors."""

    bits: int
    faults: tuple[SelectorFault, ...] = ()
    rows: frozenset[tuple[str, Look]] = frozenset()
    """The rows of the table that were needed to know."""
    missing: tuple[tuple[str, Look, int], ...] = ()
    """(expression, look, device) that the table lacks; then the rest is void."""


def pools_of(page: Page) -> tuple[Part, ...]:
    """List the pools of a page."""
    known: tuple[Part, ...] | None = page.memo.get("pools")
    if known is None:
        parts = page.parts.values()
        known = tuple(part for part in parts if isinstance(part.value, PoolPart))
        page.memo["pools"] = known
    return known


def pool_of(part: Part) -> PoolPart:
    """Read the pool of a part that is known to hold one."""
    if not isinstance(part.value, PoolPart):
        raise TypeError(part.key)
    return part.value


def selected(part: Part, selectors: tuple[str, ...], table: SelectorTable) -> Selected:
    """Find the devices of a pool that pass all selectors, in order, lazily."""
    known: Selected | None = part.memo.get(selectors)
    if known is None:
        known = _selected(part, selectors, table)
        if not known.missing:
            part.memo[selectors] = known
    return known


def _selected(part: Part, selectors: tuple[str, ...], table: SelectorTable) -> Selected:
    pool = pool_of(part)
    bits, faults = 0, []
    rows: set[tuple[str, Look]] = set()
    missing: list[tuple[str, Look, int]] = []
    for index, device in enumerate(pool.devices):
        for number, expression in enumerate(selectors):
            row = (expression, look(reads(expression), pool.driver, device))
            verdict = table.get(*row)
            if verdict is None:
                missing.append((*row, index))
                break
            rows.add(row)
            if verdict.error:
                faults.append(SelectorFault(index, number, verdict.error))
                break
            if not verdict.value:
                break
        else:
            bits |= 1 << index
    return Selected(bits, tuple(faults), frozenset(rows), tuple(missing))


def free(pool: PoolPart, use: UsePart | None) -> int:
    """Find the devices that nobody holds."""
    everything = (1 << len(pool.devices)) - 1
    if use is None or not use.taken:
        return everything
    taken = set(use.taken)
    return sum(1 << i for i, d in enumerate(pool.devices) if d.name not in taken)


def tolerated(
    pool: PoolPart, use: UsePart | None, tolerations: tuple[DeviceToleration, ...]
) -> int:
    """Find the devices without a taint that blocks these tolerations."""
    added: dict[str, list[DeviceTaint]] = {}
    for name, taint in use.taints if use is not None else ():
        added.setdefault(name, []).append(taint)
    bits = 0
    for index, device in enumerate(pool.devices):
        taints = _taints(device, added)
        if all(tolerates(tolerations, taint) for taint in taints):
            bits |= 1 << index
    return bits


def _taints(
    device: Device, added: dict[str, list[DeviceTaint]]
) -> tuple[DeviceTaint, ...]:
    if not device.taints and not added:
        return ()
    return (*device.taints, *added.get(device.name, ()))


def tolerates(tolerations: tuple[DeviceToleration, ...], taint: DeviceTaint) -> bool:
    """Say whether a taint keeps no request with these tolerations away (KEP-5055)."""
    if taint.effect not in BLOCKING_EFFECTS or taint.key == OWNED_TAINT:
        return True
    return any(_matches(toleration, taint) for toleration in tolerations)


def _matches(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def eligible(part: Part, use: UsePart | None, kind: RequestKind, bits: int) -> int:
    """Narrow selected devices to those that are free and tolerated."""
    pool = pool_of(part)
    if not bits:
        return 0
    return bits & free(pool, use) & tolerated(pool, use, kind.tolerations)
