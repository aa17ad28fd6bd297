"""The fleet as a picture: a short record for each node, made anew where it changed.

Nothing here costs what the fleet has, but for one look at each node whether it is still
the one that was shown. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from contracts.device import DeviceAttribute
from contracts.ids import DeviceID, NodeName
from contracts.messages import DeviceHealth
from moorings.views.inventory import KnownDevices, status_of, view_devices
from moorings.views.states import AWAY, FREE, HELD, SHARED, SICK, TAINTED, worst_state
from solver.snapshot.device_uses import Uses
from solver.snapshot.pages import NodeParts
from solver.snapshot.parts import NodePart, PoolPart

CODES = {FREE: "F", HELD: "H", SHARED: "S", TAINTED: "T", SICK: "U", AWAY: "A"}
"""One letter for each state of a device."""
_MODELS = ("productName", "model", "type")
"""Attributes that say which product a device is; the first that is there."""
_TOPOLOGY = ("topology.kubernetes.io/", "topology.")
_GROUPS = ("rack", "block", "row", "zone", "region", "superpod", "spine", "leaf")
Record = dict[str, Any]


class FleetPicture:
    """The rows of all nodes as last shown, and what they were made from."""

    def __init__(self) -> None:
        self.records: dict[NodeName, Record] = {}
        """By node; "" is for devices that are not of one node alone."""
        self._parts: dict[str, NodeParts] = {}
        self._uses: dict[str, Uses] = {}
        self._judged: Mapping[DeviceID, DeviceHealth] = {}
        self._heard: frozenset[NodeName] = frozenset()
        self._refused: Mapping[NodeName, tuple[PoolPart, ...]] = {}
        self._shown_in: defaultdict[str, set[NodeName]] = defaultdict(set)
        """The nodes in whose records a claim, a pod or a gang is."""

    def update(self, known: KnownDevices, touched: Iterable[str]) -> set[NodeName]:
        """Update the records; returns the nodes whose records changed.

        `touched`: the claims, pods and gangs of which something was said. What is no
        more has no record any more.
        """
        changed = set()
        for node in self._find_stale(known, touched):
            record = None
            if node in self._parts:
                rows = view_devices(known, node)
                record = _view_node(known, node, rows)
                for name in _list_mentioned(rows):
                    self._shown_in[name].add(node)
            if record is None:
                if self.records.pop(node, None) is not None:
                    changed.add(node)
            elif self.records.get(node) != record:
                self.records[node] = record
                changed.add(node)
        return changed

    def _find_stale(self, known: KnownDevices, touched: Iterable[str]) -> set[NodeName]:
        """Find the nodes of which anything that a record is made of is another."""
        inventory = known.snapshot.inventory
        parts = {
            owner: node
            for page in inventory.pages
            for owner, node in page.nodes.items()
        }
        uses = dict(inventory.holders.items())
        heard = frozenset() if known.heard is None else known.heard
        stale = {
            *_find_changed(self._parts, parts),
            *(
                inventory.pool_nodes.get(key) or ""
                for key in _find_changed(self._uses, uses)
            ),
            *(
                inventory.pool_nodes.get(f"pool/{device.driver}/{device.pool}") or ""
                for device in _find_changed(self._judged, known.judged)
            ),
            *(self._heard ^ heard),
            *_find_changed(self._refused, known.refused),
        }
        for name in touched:
            stale |= self._shown_in.pop(name, set())
        self._parts, self._uses, self._heard = parts, uses, heard
        self._judged, self._refused = known.judged, dict(known.refused)
        return {NodeName(node) for node in stale}


def _find_changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> set[Any]:
    """Find the keys that have another value, by identity: equal ones are remade."""
    gone = before.keys() - after.keys()
    return {key for key, value in after.items() if before.get(key) is not value} | gone


def _view_node(
    known: KnownDevices, node: NodeName, rows: list[dict[str, Any]]
) -> Record | None:
    """Return the record of a node; None: there is nothing to show."""
    parts = known.snapshot.inventory.pages.of(node)
    part = next((value for value in parts if isinstance(value, NodePart)), None)
    if part is None and not rows:
        return None
    kinds: list[list[Any]] = []
    gangs: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        kind = name_kind(row)
        if kinds and kinds[-1][0] == kind:
            kinds[-1][1] += 1
        else:
            kinds.append([kind, 1])
        for gang in dict.fromkeys(holder["gang"] for holder in row["holders"]):
            gangs.setdefault(gang, []).append(index)
    return {
        "name": node,
        "status": "ready" if part is None else status_of(known, part),
        "groups": {} if part is None else find_groups(part.labels),
        "states": "".join(CODES[worst_state(row["states"])] for row in rows),
        "kinds": kinds,
        "gangs": gangs,
    }


def name_kind(row: Mapping[str, Any]) -> str:
    """Name the kind of a device: its driver and its product, if known."""
    attributes: Mapping[str, DeviceAttribute] = row["attributes"]
    models = (attributes[key].string_value for key in _MODELS if key in attributes)
    return " ".join(filter(None, (row["driver"], next(models, None))))


def find_groups(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that say where a node stands, by their short names."""
    return {
        key.rpartition("/")[2]: value
        for key, value in sorted(labels.items())
        if key.startswith(_TOPOLOGY) or key.rpartition("/")[2] in _GROUPS
    }


def _list_mentioned(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """List the claims, pods and gangs that hold devices of a node."""
    mentioned: set[str] = set()
    for row in rows:
        for holder in row["holders"]:
            claim = holder["claim"]
            namespace = claim.partition("/")[0]
            mentioned.update(f"{namespace}/{pod}" for pod in holder["pods"])
            mentioned.add(claim)
            if "/" not in holder["gang"]:
                mentioned.add(holder["gang"])  # a uid: nobody has told its name yet
    return mentioned - {""}
