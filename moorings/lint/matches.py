"""Which devices of the input pass which selectors, and which of them fail."""

from __future__ import annotations

from msgspec import Struct

from contracts.device import Device
from contracts.features import Features
from contracts.ids import NodeName
from solver.devices.candidates import indices, pool_of, selected
from solver.devices.gather import Cluster
from solver.kinds.demand import request_kind
from solver.kinds.traits import costs_of, targets
from solver.problem.attributes import Element, derived, elements, published
from solver.problem.problem import SubrequestPart
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import Page


class Matched(Struct, frozen=True):
    """What a list of selectors says of all devices."""

    devices: tuple[str, ...]
    """Those that pass, as `driver/pool/device`."""
    faults: dict[int, str]
    """By selector: how many devices it fails on, the first of them, and why."""


class Matches:
    """All devices of the input, looked at with whatever selectors."""

    def __init__(
        self, pages: tuple[Page, ...], table: SelectorTable, features: Features
    ) -> None:
        self._table = table
        self._features = features
        self.cluster = Cluster(pages, features)
        parts = [part for page in pages for part in page.parts()]
        self._pools = [part for part in parts if part.key.startswith("pool/")]
        self.total = sum(len(pool_of(part).devices) for part in self._pools)
        self._known: dict[tuple[str, ...], Matched] = {}

    def of(self, selectors: tuple[str, ...]) -> Matched:
        """Look at all devices."""
        known = self._known.get(selectors)
        if known is None:
            known = self._known[selectors] = self._of(selectors)
        return known

    def _of(self, selectors: tuple[str, ...]) -> Matched:
        devices: list[str] = []
        faults: dict[int, list[tuple[str, str]]] = {}
        for part in self._pools:
            pool, found = pool_of(part), selected(part, selectors, self._table)
            names = [f"{pool.driver}/{pool.pool}/{d.name}" for d in pool.devices]
            devices.extend(names[index] for index in indices(found.bits))
            for fault in found.faults:
                row = (names[fault.device], fault.error)
                faults.setdefault(fault.selector, []).append(row)
        return Matched(
            tuple(devices),
            {index: _told(rows, self.total) for index, rows in faults.items()},
        )

    def with_capacity(self, asked: SubrequestPart) -> bool:
        """Say whether any device that passes can give what is asked."""
        kind = request_kind(asked)
        if not kind.capacity:
            return True
        for part in self._pools:
            devices = pool_of(part).devices
            for index in indices(selected(part, asked.selectors, self._table).bits):
                costs = costs_of(devices[index], kind.capacity, self._features)
                total = devices[index].capacity
                if costs is not None and all(
                    cost <= total[name].value.nano for name, cost in costs.items()
                ):
                    return True
        return False

    def on_node(
        self, node: NodeName, asked: SubrequestPart
    ) -> list[tuple[str, Device]]:
        """List the devices of a node that a request means, with their drivers."""
        kind, found = request_kind(asked), list[tuple[str, Device]]()
        for seen in self.cluster.nodes[node].pools:
            if not seen.view.usable:
                continue
            chosen = selected(seen.view.part, asked.selectors, self._table)
            bits = targets(seen.view, chosen.bits, kind, self._features)
            found.extend(
                (seen.view.driver, seen.view.devices[index]) for index in indices(bits)
            )
        return found

    def values(
        self, asked: SubrequestPart, attribute: str, driver: str, device: Device
    ) -> frozenset[Element]:
        """Read what a constraint would compare."""
        verdict = derived(asked, attribute, device, driver, self._table)
        found = published(device, driver, attribute)
        return elements(found if verdict is None else verdict.attribute, self._features)


def _told(rows: list[tuple[str, str]], total: int) -> str:
    first, error = min(rows)
    if "compile error" in error:
        return error
    return f"fails on {len(rows)} of {total} devices, first {first}: {error}"
