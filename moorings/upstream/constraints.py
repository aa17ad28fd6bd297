"""The constraints of a claim while the search adds and takes back devices.

As upstream keeps them: a device is compared with those that are in already, so with
values of odd kinds the order matters. With lists switched on, values are sets.

Source: k8s.io/dynamic-resource-allocation/structured, matchAttributeConstraint,
distinctAttributeConstraint.
"""

from __future__ import annotations

from contracts.claim import DeviceConstraint
from contracts.device import DeviceAttribute
from moorings.upstream.world import RequestData, World
from solver.devices.published import find_published
from solver.errors import FatalError
from solver.problem.attributes import (
    Element,
    elements_of,
    find_derived,
    list_scalars,
)


class Constraint:
    """One constraint of a claim; what is added last is removed first."""

    def __init__(self, world: World, constraint: DeviceConstraint) -> None:
        self._world = world
        self._requests = frozenset(constraint.requests)
        self._match = constraint.match_attribute is not None
        self.name = str(constraint.match_attribute or constraint.distinct_attribute)
        self._added: list[DeviceAttribute] = []
        self._common: list[frozenset[Element]] = []
        """Values that all matched devices share, after each that was added."""

    def concerns(self, request: RequestData) -> bool:
        """True if the constraint is about devices of a (sub)request."""
        names = self._requests
        return not names or any(name in names for name in request.names)

    def add(self, request: RequestData, index: int) -> bool:
        """Add a device if it may be; False: it may not, and nothing changed.

        Raises:
            FatalError: its derived attribute cannot be computed.
        """
        if not self.concerns(request):
            return True
        attribute = self.attribute_of(request, index)
        if attribute is None:
            return False
        if self._world.features.list_type_attributes:
            return self._add_set(attribute)
        return self._add_scalar(attribute)

    def remove(self, request: RequestData) -> None:
        """Take back the device that was added last."""
        if self.concerns(request):
            self._added.pop()
            if self._common:
                self._common.pop()

    def attribute_of(self, request: RequestData, index: int) -> DeviceAttribute | None:
        """Look up what the constraint compares of a device.

        Raises:
            FatalError: a derived attribute cannot be computed.
        """
        device, name = self._world.devices[index], self._world.devices[index].name
        part, table = request.part, self._world.table
        verdict = find_derived(part, self.name, device.device, name.driver, table)
        if verdict is None:
            return find_published(device.device, name.driver, self.name)
        if verdict.error.startswith("CEL compile error"):
            raise FatalError(
                f"compile derived attribute {self.name} failed: {verdict.error}"
            )
        if verdict.error:
            raise FatalError(
                f"evaluate derived attribute {self.name} on device {name} "
                f"failed: {verdict.error}"
            )
        return verdict.attribute

    def _add_set(self, attribute: DeviceAttribute) -> bool:
        """Add a device by all of its values: one in common, or none twice."""
        features = self._world.features
        values = elements_of(attribute, features)
        if not values:
            return False
        if self._match:
            common = self._common[-1] & values if self._common else values
            if not common:
                return False
            self._common.append(common)
        elif any(values & elements_of(other, features) for other in self._added):
            return False
        self._added.append(attribute)
        return True

    def _add_scalar(self, attribute: DeviceAttribute) -> bool:
        """Add a device by its one value, compared as upstream does without lists."""
        others = self._added[:1] if self._match else self._added
        if not all(self._goes_with(attribute, other) for other in others):
            return False
        self._added.append(attribute)
        return True

    def _goes_with(self, attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
        features = self._world.features
        values_of_other = dict(list_scalars(other, features))
        for kind, value in list_scalars(attribute, features):
            if value is not None:
                return (values_of_other[kind] == value) == self._match
        return False
