"""Which drivers, device classes and nodes Moorings decides for.

What is not owned is left to kube-scheduler, and its allocations count as taken. Stands
alone so that slices, taint rules, claims and state are judged by the same answers;
must not know how ownership is enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from contracts.claim import ResourceClaimSpec
from contracts.device import ResourceSliceSpec
from contracts.ids import DeviceClassName, DriverName


class Ownership(Struct, frozen=True, kw_only=True):
    """What is decided here; whatever is empty means all of its kind."""

    drivers: frozenset[DriverName] = frozenset()
    classes: frozenset[DeviceClassName] = frozenset()
    node_labels: frozenset[tuple[str, str]] = frozenset()
    """Labels with their values; an owned node has them all."""

    @classmethod
    def of(
        cls, drivers: Iterable[str], classes: Iterable[str], nodes: Iterable[str]
    ) -> Ownership:
        """Read what is configured; `nodes` is `key=value` each."""
        labels = (text.partition("=") for text in nodes)
        return cls(
            drivers=frozenset(map(DriverName, drivers)),
            classes=frozenset(map(DeviceClassName, classes)),
            node_labels=frozenset((key, value) for key, _, value in labels),
        )

    @property
    def is_nothing(self) -> bool:
        """True if Moorings owns nothing and decides only for pods at its gate."""
        return not (self.drivers or self.classes or self.node_labels)

    def owns_driver(self, driver: DriverName) -> bool:
        """True if Moorings may decide about devices of this driver."""
        return not self.drivers or driver in self.drivers

    def owns_class(self, name: DeviceClassName) -> bool:
        """True if Moorings decides about requests of this class."""
        return not self.classes or name in self.classes

    def owns_node(self, labels: Mapping[str, str]) -> bool:
        """True if Moorings decides about devices local to a node of these labels."""
        return self.node_labels <= labels.items()

    def owns_claim(self, spec: ResourceClaimSpec) -> bool:
        """True if Moorings decides about a claim.

        One request or alternative of an owned class is enough: only a claim that uses
        no such class is left to kube-scheduler.
        """
        return not self.classes or any(map(self.owns_class, _list_classes(spec)))

    def owns_slice(
        self, spec: ResourceSliceSpec, labels: Mapping[str, str] | None
    ) -> bool:
        """True if the devices of a slice are Moorings' to give.

        `labels` are those of its node, None where that is not known. Devices that are
        not local to one node are owned only where all nodes are.
        """
        if not self.owns_driver(spec.driver):
            return False
        if not self.node_labels:
            return True
        local = spec.node_name is not None and labels is not None
        return local and self.owns_node(labels or {})

    def taints_driver(self, driver: DriverName) -> bool:
        """True if devices of this driver, on owned nodes, are kept from kube-scheduler.

        Only drivers or nodes that are named have devices that are Moorings' alone.
        Nobody can tell which devices serve a class and no other: there the gate and
        the admission policy keep kube-scheduler away.
        """
        return driver in self.drivers or bool(self.node_labels and not self.drivers)


def _list_classes(spec: ResourceClaimSpec) -> Iterator[DeviceClassName]:
    for request in spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        for sub_request in request.first_available:
            yield sub_request.device_class_name
