"""Which devices are interchangeable where the search stands.

Two devices with one key can be exchanged in any solution that extends what is chosen:
either they are equal in all that any request or constraint of the pod can see, or all
devices with one value of an attribute can be exchanged with all devices that have
another, and nothing with either value is chosen yet. An exchange turns a solution with
the later device into one with the earlier, which would have been found before; so after
the earlier one failed, the later need not be tried.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from solver.engines.upstream.state import State
from solver.engines.upstream.world import Ask, World
from solver.errors import FatalError
from solver.problem.attributes import elements

Values = tuple[tuple[object, ...], ...]


class Symmetry:
    """The keys of a node's devices; made when first asked for."""

    def __init__(self, world: World, state: State, asks: list[list[list[Ask]]]) -> None:
        self._world = world
        self._state = state
        self._asks = [ask for claim in asks for request in claim for ask in request]

    def keys(self, index: int) -> tuple[object, ...]:
        """List the keys of a device that is not in use, as things stand."""
        mine = self._dynamic(index)
        bare, values = self._static[index]
        found: list[object] = [("equal", bare, values, mine)]
        for column, value in enumerate(values):
            if len(value) == 1 and not self._is_touched(column, value):
                others = values[:column] + values[column + 1 :]
                profile = self._profiles[column][value]
                found.append(("class", column, bare, others, profile, mine))
        return tuple(found)

    def _dynamic(self, index: int) -> object:
        shares = self._state.shares.get(index, ())
        return (
            tuple(sorted(tuple(sorted(share.items())) for share in shares)),
            tuple(sorted(self._state.claims_of.get(index, ()))),
        )

    def _is_touched(self, column: int, value: tuple[object, ...]) -> bool:
        used = (*self._state.claims_of, *self._state.shares)
        return any(value[0] in self._static[index][1][column] for index in used)

    @cached_property
    def _static(self) -> list[tuple[object, Values]]:
        """What requests see of each device, and the values that constraints compare."""
        return [
            (self._seen(index), self._values(index))
            for index in range(len(self._world.candidates))
        ]

    @cached_property
    def _profiles(self) -> list[dict[tuple[object, ...], object]]:
        """By attribute and value: what has it, apart from the value itself."""
        found: list[dict[tuple[object, ...], object]] = []
        for column in range(len(self._columns)):
            counts: dict[tuple[object, ...], Counter[object]] = {}
            listed: set[object] = set()
            for bare, values in self._static:
                others = values[:column] + values[column + 1 :]
                counts.setdefault(values[column], Counter())[bare, others] += 1
                if len(values[column]) > 1:
                    listed.update(values[column])
            found.append(
                {
                    value: value if listed & set(value) else frozenset(count.items())
                    for value, count in counts.items()
                }
            )
        return found

    @cached_property
    def _columns(self) -> list[tuple[str, Ask]]:
        """The attributes that are compared, by the request that is asked for them."""
        found: dict[tuple[str, object], tuple[str, Ask]] = {}
        for ask in self._asks:
            for constraint in self._state.constraints[ask.claim]:
                if constraint.concerns(ask):
                    key = (constraint.name, ask.part.derived_attributes)
                    found.setdefault(key, (constraint.name, ask))
        return list(found.values())

    def _values(self, index: int) -> Values:
        found: list[tuple[object, ...]] = []
        for name, ask in self._columns:
            constraint = next(
                c for c in self._state.constraints[ask.claim] if c.name == name
            )
            try:
                value = constraint.attribute(ask, index)
            except FatalError as error:
                found.append((str(error), str(error)))
                continue
            values = elements(value, self._world.features)
            if value is not None and not values:
                found.append((repr(value), repr(value)))
            else:
                found.append(tuple(sorted(values, key=repr)))
        return tuple(found)

    def _seen(self, index: int) -> object:
        world, item = self._world, self._world.candidates[index]
        by_ask = []
        for ask in self._asks:
            verdict = world.verdicts(ask.part)[index]
            try:
                amounts = world.amounts(ask, index)
                cost = None if amounts is None else tuple(amounts.items())
            except FatalError as error:
                cost = ((str(error), None),)  # type: ignore[assignment]  # only compared
            targeted = ask.targets is not None and index in ask.targets
            by_ask.append((verdict, cost, world.tolerates(ask.part)[index], targeted))
        device = item.device
        capacity = tuple(
            (name, entry.value.nano) for name, entry in sorted(device.capacity.items())
        )
        draws = tuple(
            (
                consumption.counter_set,
                consumption.compatibility_groups,
                tuple(
                    sorted((n, c.value.nano) for n, c in consumption.counters.items())
                ),
            )
            for consumption in device.consumes_counters
        )
        return (
            tuple(by_ask),
            item.shareable,
            item.held,
            None if item.shares is None else tuple(sorted(item.shares.items())),
            item.supported,
            capacity,
            (item.pool, draws) if draws else None,
        )
