"""The constraints of a claim while the search adds and takes back devices.

As upstream keeps them: a device is compared with those that are in already, so with
values of odd kinds the order matters. With lists switched on, values are sets.

Source: k8s.io/dynamic-resource-allocation/structured, matchAttributeConstraint,
distinctAttributeConstraint.
"""

from __future__ import annotations

from contracts.claim import DeviceConstraint
from contracts.device import DeviceAttribute
from solver.engines.upstream.world import Ask, World
from solver.errors import FatalError
from solver.problem.attributes import Element, derived, elements, published, scalars


class Constraint:
    """One constraint of a claim."""

    def __init__(self, world: World, constraint: DeviceConstraint) -> None:
        self._world = world
        self._requests = frozenset(constraint.requests)
        self._match = constraint.match_attribute is not None
        self.name = str(constraint.match_attribute or constraint.distinct_attribute)
        self._added: list[DeviceAttribute] = []
        self._common: list[frozenset[Element]] = []

    def concerns(self, ask: Ask) -> bool:
        """Say whether devices of a (sub)request are in the scope."""
        return not self._requests or any(name in self._requests for name in ask.names)

    def add(self, ask: Ask, index: int) -> bool:
        """Add a device if it may be; False: it may not, and nothing changed.

        Raises:
            FatalError: its derived attribute cannot be computed.
        """
        if not self.concerns(ask):
            return True
        found = self.attribute(ask, index)
        if found is None:
            return False
        if self._world.features.list_type_attributes:
            return self._add_set(found)
        return self._add_scalar(found)

    def remove(self, ask: Ask) -> None:
        """Take back the device that was added last."""
        if self.concerns(ask):
            self._added.pop()
            if self._common:
                self._common.pop()

    def attribute(self, ask: Ask, index: int) -> DeviceAttribute | None:
        """Look up what the constraint compares of a device.

        Raises:
            FatalError: a derived attribute cannot be computed.
        """
        item = self._world.candidates[index]
        driver = item.name.driver
        verdict = derived(ask.part, self.name, item.device, driver, self._world.table)
        if verdict is None:
            return published(item.device, driver, self.name)
        if verdict.error.startswith("CEL compile error"):
            raise FatalError(
                f"compile derived attribute {self.name} failed: {verdict.error}"
            )
        if verdict.error:
            raise FatalError(
                f"evaluate derived attribute {self.name} on device {item.name} "
                f"failed: {verdict.error}"
            )
        return verdict.attribute

    def _add_set(self, found: DeviceAttribute) -> bool:
        values = elements(found, self._world.features)
        if not values:
            return False
        if self._match:
            common = self._common[-1] & values if self._common else values
            if not common:
                return False
            self._common.append(common)
        else:
            features = self._world.features
            if any(values & elements(other, features) for other in self._added):
                return False
        self._added.append(found)
        return True

    def _add_scalar(self, found: DeviceAttribute) -> bool:
        others = self._added[:1] if self._match else self._added
        if not all(self._goes_with(found, other) for other in others):
            return False
        self._added.append(found)
        return True

    def _goes_with(self, found: DeviceAttribute, other: DeviceAttribute) -> bool:
        known = dict(scalars(other))
        for kind, value in scalars(found):
            if value is not None:
                return (known[kind] == value) == self._match
        return False
