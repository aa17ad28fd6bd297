"""Which devices of the input pass which selectors, and which of them fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from contracts.counts import counted
from contracts.device import Device
from contracts.features import Features
from contracts.ids import NodeName
from solver.cache import Cache
from solver.devices.candidates import indices_of, select_devices
from solver.devices.facts import facts_of, pool_of
from solver.devices.gather import Cluster
from solver.devices.published import find_published
from solver.kinds.query import request_kind_of
from solver.kinds.traits import costs_of, find_targets
from solver.problem.attributes import Element, elements_of, find_derived
from solver.problem.gangs import SubrequestPart
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import Page


class SelectorMatch(Struct, frozen=True):
    """The verdicts of a list of selectors on all devices."""

    devices: tuple[str, ...]
    """Devices that pass, as `driver/pool/device`."""
    faults: dict[int, str]
    """By selector: how many devices it fails on, the first of them, and why."""
    most_on_node: int = 0
    """At most so many of them are on one node."""
    are_shareable: bool = False
    """True if some may be had several times."""


MOST_LISTS = 4096
"""Lists of selectors whose matches are remembered."""


class Matches:
    """All devices of the input, held against whatever selectors."""

    def __init__(
        self,
        pages: tuple[Page, ...],
        table: SelectorTable,
        features: Features,
        disabled: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`disabled`: the selectors that use what a gate switches off, and why."""
        self._table = table
        self._disabled = disabled
        self._features = features
        self.cluster = Cluster(pages, features)
        parts = [part for page in pages for part in page.parts()]
        self._pools = [part for part in parts if part.key.startswith("pool/")]
        self.total = sum(len(pool_of(part).devices) for part in self._pools)
        self._matches: Cache[tuple[str, ...], SelectorMatch] = Cache(MOST_LISTS)

    def of(self, selectors: tuple[str, ...]) -> SelectorMatch:
        """Hold selectors against all devices."""
        match = self._matches.get(selectors)
        if match is None:
            match = self._matches.keep(selectors, self._match_selectors(selectors))
        return match

    def _match_selectors(self, selectors: tuple[str, ...]) -> SelectorMatch:
        devices: list[str] = []
        faults: dict[int, list[tuple[str, str]]] = {}
        by_owner, shareable = Counter[str](), 0
        for part in self._pools:
            pool, passing = pool_of(part), select_devices(part, selectors, self._table)
            names = [f"{pool.driver}/{pool.pool}/{d.name}" for d in pool.devices]
            devices.extend(names[index] for index in indices_of(passing.bits))
            by_owner[part.owner] += passing.bits.bit_count()
            shareable |= passing.bits & facts_of(part).marks.shareable
            for fault in passing.faults:
                row = (names[fault.device], fault.error)
                faults.setdefault(fault.selector, []).append(row)
        described = {
            index: _describe_faults(rows, self.total) for index, rows in faults.items()
        }
        described |= {
            index: self._disabled[text]
            for index, text in enumerate(selectors)
            if text in self._disabled
        }
        # Who has no owner may be seen by any node.
        of_all = by_owner.pop("", 0)
        most = max(by_owner.values(), default=0) + of_all
        return SelectorMatch(tuple(devices), described, most, shareable > 0)

    def has_capacity(self, subrequest: SubrequestPart) -> bool:
        """True if any matching device has the requested capacity."""
        kind = request_kind_of(subrequest)
        if not kind.capacity:
            return True
        for part in self._pools:
            pool = pool_of(part)
            for index in indices_of(
                select_devices(part, subrequest.selectors, self._table).bits
            ):
                device = pool.devices[index]
                total = device.capacity
                costs = costs_of(device, kind.capacity, self._features, pool.driver)
                if costs is not None and all(
                    cost <= total[name].value.nano for name, cost in costs.items()
                ):
                    return True
        return False

    def list_devices(
        self, node: NodeName, subrequest: SubrequestPart
    ) -> list[tuple[str, Device]]:
        """List the devices of a node that a request means, with their drivers."""
        kind, devices = request_kind_of(subrequest), list[tuple[str, Device]]()
        for pool in self.cluster.nodes[node].pools:
            if not pool.usable:
                continue
            passing = select_devices(pool.part, subrequest.selectors, self._table)
            bits = find_targets(pool, passing.bits, kind, self._features)
            devices.extend(
                (pool.driver, pool.devices[index]) for index in indices_of(bits)
            )
        return devices

    def count_least(self, subrequest: SubrequestPart) -> int:
        """Count the devices that a request means on the node that has the fewest."""
        nodes = self.cluster.nodes
        counts = (len(self.list_devices(node, subrequest)) for node in nodes)
        return min(filter(None, counts), default=0)

    def read_values(
        self, subrequest: SubrequestPart, attribute: str, driver: str, device: Device
    ) -> frozenset[Element]:
        """Read what a constraint would compare."""
        verdict = find_derived(subrequest, attribute, device, driver, self._table)
        attribute_value = find_published(device, driver, attribute)
        return elements_of(
            attribute_value if verdict is None else verdict.attribute, self._features
        )

    def count_lacking(
        self, attribute: str, subrequests: Iterable[SubrequestPart]
    ) -> tuple[int, int]:
        """Count the matching devices that lack an attribute, and all of them.

        A device counts once a node; what the last request derives of it decides.
        """
        has_attribute = {
            (driver, device.name, node): bool(
                self.read_values(subrequest, attribute, driver, device)
            )
            for subrequest in subrequests
            for node in self.cluster.nodes
            for driver, device in self.list_devices(node, subrequest)
        }
        return sum(not has for has in has_attribute.values()), len(has_attribute)


def _describe_faults(rows: list[tuple[str, str]], total: int) -> str:
    first, error = min(rows)
    if "compile error" in error:
        return error
    return (
        f"fails on {len(rows)} of {counted(total, 'device')}, such as {first}: {error}"
    )
