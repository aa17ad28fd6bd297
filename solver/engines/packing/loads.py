"""Which pods are on which nodes, and what is left: the answer while it is made.

Gangs come and go as a whole. Of each pod the parts that serve it are known, so that it
can be taken out again; which devices serve is left open (`part_states.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from solver.engines.blocks import list_inner
from solver.engines.packing.batch import Booleans, PackingBatch
from solver.engines.packing.part_states import Integers

Floats = NDArray[np.float64]


class Spot(Struct, frozen=True):
    """A pod on its node."""

    kind: int
    """Pod kind."""
    node: int
    instance: int
    """Which block of its gang it belongs to."""
    parts: tuple[tuple[int, int], ...]
    """(slot, part of the node), one for each slot that it needs."""


class Scale(Struct, frozen=True):
    """What is left of a node is weighed by this: nodes with least left come first."""

    prices: Integers
    """Of slots; a part counts for what it can still serve at these prices."""
    amounts: Floats
    """Of one unit of each resource."""
    by_name: bool = False
    """Nodes by name instead: first fit."""


class Loads:
    """One answer while it is made."""

    def __init__(self, batch: PackingBatch, scale: Scale) -> None:
        self._batch = batch
        self.free = batch.free.copy()
        """[node, resource]."""
        self.states = [list(parts) for parts in batch.starts]
        """By node, the state of each part."""
        self._served: list[list[list[int]]] = [[[] for _ in p] for p in batch.starts]
        """By node and part, the slots that it serves."""
        self.gangs: dict[int, list[Spot]] = {}
        """By gang that is in, its pods; see `enter` and `remove_gang`."""
        self.is_out: Booleans = np.ones(len(batch.sort_of), bool)
        """By gang."""
        self._worth = [0] * len(batch.priorities)
        self.on_node: list[Counter[int]] = [Counter() for _ in batch.nodes]
        """For each gang its, pods on a node."""
        self.room: Integers = batch.room.copy()
        """[node, slot]: how many of it the node's parts serve, and nothing else."""
        self._hosting: Integers = np.array(
            [(batch.states.after[p] >= 0).sum(axis=0) for p in self.states], np.int64
        ).reshape(len(batch.nodes), -1)
        """[node, slot]: how many parts serve one more."""
        self.set_scale(scale)

    def set_scale(self, scale: Scale) -> None:
        """Weigh nodes by other prices from now on."""
        self.scale = scale
        self.values = self._batch.states.value(scale.prices)
        """For each state of a part, what it can still serve at the prices."""
        self.left: Floats = np.array(
            [self._weigh(node) for node in range(len(self.states))], np.float64
        )

    def _weigh(self, node: int) -> float:
        if self.scale.by_name:
            return float(node)
        amounts = float(self.free[node] @ self.scale.amounts)
        return float(self.values[self.states[node]].sum()) + amounts

    def worth(self) -> tuple[int, ...]:
        """Add up the weight of the gangs that are in, by priority, highest first."""
        return tuple(self._worth)

    def _enter(self, gang: int, spots: list[Spot]) -> None:
        """Note that a gang is in, its pods on their nodes."""
        self.gangs[gang] = spots
        self.is_out[gang] = False
        self._worth[self._batch.level_of[gang]] += self._batch.weight_of(gang)

    # --- single pods -----------------------------------------------------------------

    def fitting(self, kind: int) -> Booleans:
        """Return for each node whether it has room for a pod, by counting."""
        batch = self._batch
        mask: Booleans = batch.fits[kind] & (self.free >= batch.needs[kind]).all(axis=1)
        for slot, count in batch.pods[kind].slots:
            mask &= self.room[:, slot] >= count
            if count > 1 and batch.is_spread[slot]:
                mask &= self._hosting[:, slot] >= count
        return mask

    def fits_on(self, kind: int, node: int) -> bool:
        """Return True if one node has room for a pod, by counting."""
        batch = self._batch
        if not batch.fits[kind, node] or (self.free[node] < batch.needs[kind]).any():
            return False
        return all(
            self.room[node, slot] >= count
            and not (
                count > 1
                and batch.is_spread[slot]
                and self._hosting[node, slot] < count
            )
            for slot, count in batch.pods[kind].slots
        )

    def count_rooms(self, kind: int) -> Integers:
        """Count the pods of a kind that each node has room for, at most."""
        batch = self._batch
        rooms = np.where(batch.fits[kind], np.int64(1 << 30), np.int64(0))
        for resource, need in enumerate(batch.pods[kind].needs):
            if need:
                rooms = np.minimum(rooms, self.free[:, resource] // need)
        for slot, count in batch.pods[kind].slots:
            rooms = np.minimum(rooms, self.room[:, slot] // count)
            if count > 1 and batch.is_spread[slot]:
                rooms = np.where(self._hosting[:, slot] >= count, rooms, 0)
        return np.maximum(rooms, 0)

    def choose_parts(self, kind: int, node: int) -> tuple[tuple[int, int], ...] | None:
        """Choose the parts that lose least by serving a pod; None: they cannot."""
        after, values = self._batch.states.after, self.values
        states = list(self.states[node])
        chosen: list[tuple[int, int]] = []
        for slot, count in self._batch.pods[kind].slots:
            spread = count > 1 and self._batch.is_spread[slot]
            used = set[int]()
            for _ in range(count):
                best, least = -1, 0
                seen = set[int]()
                for part, state in enumerate(states):
                    if state in seen or part in used:
                        continue
                    target = int(after[state, slot])
                    if target < 0:
                        seen.add(state)
                        continue
                    if not spread:
                        seen.add(state)
                    loss = int(values[state] - values[target])
                    if best < 0 or loss < least:
                        best, least = part, loss
                if best < 0:
                    return None
                states[best] = int(after[states[best], slot])
                chosen.append((slot, best))
                if spread:
                    used.add(best)
        return tuple(chosen)

    def put(self, gang: int, spot: Spot) -> None:
        """Put a pod of a gang on its node."""
        node, after = spot.node, self._batch.states.after
        self.free[node] -= self._batch.needs[spot.kind]
        for slot, part in spot.parts:
            self._served[node][part].append(slot)
            self.states[node][part] = int(after[self.states[node][part], slot])
        self.on_node[node][gang] += 1
        self._refresh(node, devices=bool(spot.parts))

    def take_out(self, gang: int, spot: Spot) -> None:
        """Take a pod of a gang off its node."""
        node, batch = spot.node, self._batch
        self.free[node] += batch.needs[spot.kind]
        for slot, part in spot.parts:
            self._served[node][part].remove(slot)
        for part in {part for _, part in spot.parts}:
            start = batch.starts[node][part]
            served = self._served[node][part]
            self.states[node][part] = batch.states.state_after(start, served)
        self.on_node[node][gang] -= 1
        if not self.on_node[node][gang]:
            del self.on_node[node][gang]
        self._refresh(node, devices=bool(spot.parts))

    def _refresh(self, node: int, *, devices: bool) -> None:
        if devices:
            states, of = self._batch.states, self.states[node]
            self.room[node] = states.most[of].sum(axis=0)
            self._hosting[node] = (states.after[of] >= 0).sum(axis=0)
        self.left[node] = self._weigh(node)

    def pods_on(self, node: int) -> Counter[int]:
        """Count the pods on a node by kind."""
        return Counter(
            spot.kind
            for gang in self.on_node[node]
            for spot in self.gangs[gang]
            if spot.node == node
        )

    def served_on(self, nodes: Iterable[int]) -> dict[int, list[tuple[int, ...]]]:
        """List by first state what the parts of some nodes serve now."""
        found: dict[int, list[tuple[int, ...]]] = {}
        for node in nodes:
            for start, slots in zip(
                self._batch.starts[node], self._served[node], strict=True
            ):
                if slots:
                    found.setdefault(start, []).append(tuple(sorted(slots)))
        return found

    def served_by(self, node: int, part: int) -> tuple[int, ...]:
        """List the slots that a part serves, sorted."""
        return tuple(sorted(self._served[node][part]))

    # --- gangs -----------------------------------------------------------------------

    def add_gang(self, gang: int, spots: Sequence[Spot]) -> None:
        """Put all pods of a gang on their nodes."""
        for spot in spots:
            self.put(gang, spot)
        self._enter(gang, list(spots))

    def remove_gang(self, gang: int) -> list[Spot]:
        """Take all pods of a gang off their nodes; return where they were."""
        spots = self.gangs.pop(gang)
        self.is_out[gang] = True
        self._worth[self._batch.level_of[gang]] -= self._batch.weight_of(gang)
        for spot in spots:
            self.take_out(gang, spot)
        return spots

    def place_gang(
        self, gang: int, *, among: Booleans | None = None, shake: Floats | None = None
    ) -> bool:
        """Place all pods of a gang, each where least is left, or none.

        `among`: only on these nodes; `shake`: factors of what is left of nodes.
        """
        mask = np.ones(len(self.states), bool) if among is None else among
        search = _GangPlacing(self._batch, self, gang, shake)
        if search.place(0, mask):
            self._enter(gang, search.spots)
            return True
        search.undo(0)
        return False


class _GangPlacing:
    """Places one gang, block by block."""

    def __init__(
        self, batch: PackingBatch, loads: Loads, gang: int, shake: Floats | None
    ) -> None:
        self._batch, self._loads, self._gang = batch, loads, gang
        self._instances = batch.instances[gang]
        self._inner = list_inner(self._instances)
        self._shake = shake
        self.spots: list[Spot] = []

    def undo(self, kept: int) -> None:
        """Take out all pods but the first `kept`."""
        while len(self.spots) > kept:
            self._loads.take_out(self._gang, self.spots.pop())

    def place(self, number: int, mask: Booleans) -> bool:
        """Place a block and all in it on some nodes; what was placed stays if not."""
        label = self._instances[number].block.label
        if label < 0:
            return self._fill(number, mask)
        kept = len(self.spots)
        for domain in self._list_domains(number, label, mask):
            inside = mask & (self._batch.domain[label] == domain)
            if self._fill(number, inside):
                return True
            self.undo(kept)
        return False

    def _list_domains(self, number: int, label: int, mask: Booleans) -> list[int]:
        """List the domains that may have room, those with least left first."""
        domain = self._batch.domain[label]
        known = mask & (domain >= 0)
        if not known.any():
            return []
        count = int(domain[known].max()) + 1
        has_room = np.bincount(domain[known], minlength=count) > 0
        for kind, pods in self._instances[number].block.total.items():
            rooms = np.minimum(self._loads.count_rooms(kind)[known], pods)
            has_room &= np.bincount(domain[known], rooms, minlength=count) >= pods
        left = np.bincount(domain[known], self._weigh()[known], minlength=count)
        order = np.argsort(left, kind="stable")
        return [int(domain) for domain in order if has_room[domain]]

    def _weigh(self) -> Floats:
        left = self._loads.left
        return left if self._shake is None else left * self._shake

    def _fill(self, number: int, mask: Booleans) -> bool:
        for inner in self._inner[number]:
            if not self.place(inner, mask):
                return False
        pods = self._instances[number].block.pods
        kinds = sorted(
            pods, key=lambda pair: self._batch.size_of[pair[0]], reverse=True
        )
        return all(self._put_pods(number, kind, count, mask) for kind, count in kinds)

    def _put_pods(self, number: int, kind: int, count: int, mask: Booleans) -> bool:
        loads = self._loads
        fitting = loads.fitting(kind) & mask
        weighed = np.where(fitting, self._weigh(), np.inf)
        while count:
            node = int(weighed.argmin()) if len(weighed) else 0
            if not len(weighed) or weighed[node] == np.inf:
                return False
            parts = loads.choose_parts(kind, node)
            if parts is None:
                weighed[node] = np.inf
                continue
            spot = Spot(kind, node, number, parts)
            loads.put(self._gang, spot)
            self.spots.append(spot)
            count -= 1
            if not loads.fits_on(kind, node):
                weighed[node] = np.inf
            else:
                factor = 1.0 if self._shake is None else self._shake[node]
                weighed[node] = loads.left[node] * factor
        return True
