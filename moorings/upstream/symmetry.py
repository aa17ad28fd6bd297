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

from moorings.upstream.state import State
from moorings.upstream.world import RequestData, Requests, World
from solver.errors import FatalError
from solver.problem.attributes import elements_of

Values = tuple[tuple[object, ...], ...]


class Symmetry:
    """The keys of a node's devices; made when first asked for."""

    def __init__(self, world: World, state: State, requests: Requests) -> None:
        self._world = world
        self._state = state
        self._requests = [
            alternative
            for of_claim in requests
            for alternatives in of_claim
            for alternative in alternatives
        ]

    def keys_of(self, index: int) -> tuple[object, ...]:
        """List the keys of a device that is not in use, as things stand."""
        given_out = self._given_out(index)
        bare, values = self._static_values[index]
        keys: list[object] = [("equal", bare, values, given_out)]
        for column, value in enumerate(values):
            if len(value) == 1 and not self._is_touched(column, value):
                others = values[:column] + values[column + 1 :]
                profile = self._value_profiles[column][value]
                keys.append(("class", column, bare, others, profile, given_out))
        return tuple(keys)

    def _given_out(self, index: int) -> object:
        """What the search has given out of a device so far."""
        shares = self._state.shares.get(index, ())
        return (
            tuple(sorted(tuple(sorted(share.items())) for share in shares)),
            tuple(sorted(self._state.claims_of.get(index, ()))),
        )

    def _is_touched(self, column: int, value: tuple[object, ...]) -> bool:
        used = (*self._state.claims_of, *self._state.shares)
        return any(value[0] in self._static_values[index][1][column] for index in used)

    @cached_property
    def _static_values(self) -> list[tuple[object, Values]]:
        """What requests see of each device, and values that constraints compare."""
        return [
            (self._view_of(index), self._values_of(index))
            for index in range(len(self._world.devices))
        ]

    @cached_property
    def _value_profiles(self) -> list[dict[tuple[object, ...], object]]:
        """By attribute and value: what has it, apart from the value itself.

        A value that some device has in a list is no other value's equal.
        """
        profiles: list[dict[tuple[object, ...], object]] = []
        for column in range(len(self._compared_attributes)):
            counts: dict[tuple[object, ...], Counter[object]] = {}
            in_lists: set[object] = set()
            for bare, values in self._static_values:
                others = values[:column] + values[column + 1 :]
                counts.setdefault(values[column], Counter())[bare, others] += 1
                if len(values[column]) > 1:
                    in_lists.update(values[column])
            profiles.append(
                {
                    value: value if in_lists & set(value) else frozenset(count.items())
                    for value, count in counts.items()
                }
            )
        return profiles

    @cached_property
    def _compared_attributes(self) -> list[tuple[str, RequestData]]:
        """The attributes that are compared, by the request that is asked for them."""
        columns: dict[tuple[str, object], tuple[str, RequestData]] = {}
        for request in self._requests:
            for constraint in self._state.constraints[request.claim]:
                if constraint.concerns(request):
                    key = (constraint.name, request.part.derived_attributes)
                    columns.setdefault(key, (constraint.name, request))
        return list(columns.values())

    def _values_of(self, index: int) -> Values:
        """List what a device has of each compared attribute; a fault is a value."""
        values_by_column: list[tuple[object, ...]] = []
        for name, request in self._compared_attributes:
            constraint = next(
                constraint
                for constraint in self._state.constraints[request.claim]
                if constraint.name == name
            )
            try:
                attribute = constraint.attribute_of(request, index)
            except FatalError as error:
                values_by_column.append((str(error), str(error)))
                continue
            values = elements_of(attribute, self._world.features)
            if attribute is not None and not values:
                values_by_column.append((repr(attribute), repr(attribute)))
            else:
                values_by_column.append(tuple(sorted(values, key=repr)))
        return tuple(values_by_column)

    def _view_of(self, index: int) -> object:
        """Collect all that requests can tell of a device, but compared attributes."""
        world, node_device = self._world, self._world.devices[index]
        # First what each request makes of it.
        by_request = []
        for request in self._requests:
            verdict = world.verdicts_of(request.part)[index]
            try:
                amounts = world.amounts_of(request, index)
                cost = None if amounts is None else tuple(amounts.items())
            except FatalError as error:
                cost = ((str(error), None),)  # type: ignore[assignment]  # only compared
            tolerated = world.tolerance_of(request.part)[index]
            targeted = request.targets is not None and index in request.targets
            by_request.append((verdict, cost, tolerated, targeted))
        # Then what it has and what it draws from its pool.
        device, shares = node_device.device, node_device.shares
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
            tuple(by_request),
            node_device.shareable,
            node_device.held,
            None if shares is None else tuple(sorted(shares.items())),
            node_device.supported,
            capacity,
            (node_device.pool, draws) if draws else None,
        )
