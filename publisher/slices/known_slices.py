"""What is known of ResourceSlices and Nodes: our slices by pool, and who else has some.

Of slices that others write only the pool is kept. Answers where a pool may be
published and what the API server made of what was sent. Pure; an older version of a
slice never replaces a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.device import ResourceSlice, ResourceSliceSpec
from contracts.ids import NodeName, PoolID
from contracts.meta import OwnerReference
from contracts.workload import Node
from publisher.kube.object_cache import ObjectCache
from publisher.slices.layout import PoolLayout, is_our_name, owner_reference_of, pool_of


class ForeignPool(Struct, frozen=True):
    """A pool with slices that somebody else writes."""

    pool: PoolID
    node: NodeName | None = None
    """None: its devices are not local to one node."""


class _Stored(Struct, frozen=True):
    """What was sent, and what the API server kept of it."""

    sent: ResourceSliceSpec
    kept: ResourceSliceSpec


class KnownSlices:
    """Slices by name and pool, Nodes by name."""

    def __init__(self) -> None:
        self._ours: ObjectCache[ResourceSlice] = ObjectCache()
        self._of_pool: dict[PoolID, set[str]] = {}
        """Names of our slices."""
        self._foreign: dict[str, ForeignPool] = {}
        """By the name of a slice that is not ours."""
        self._others: dict[PoolID, set[str]] = {}
        """Names of slices that are not ours."""
        self._nodes: dict[NodeName, Node] = {}
        self._stored: dict[str, _Stored] = {}

    # --- what is there --------------------------------------------------------------

    def pools(self) -> Iterable[PoolID]:
        """Name the pools of which slices of ours are there."""
        return tuple(self._of_pool)

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Return our slices of a pool, as if the API server kept all that we sent."""
        names = sorted(self._of_pool.get(pool, ()))
        return tuple(
            self._as_sent(ours) for name in names if (ours := self._ours.get(name))
        )

    def owner_of(self, layout: PoolLayout) -> OwnerReference | str:
        """Return a reference to the Node of a pool, or why no slices may be written."""
        pool = PoolID(layout.driver, layout.name)
        if others := self._others.get(pool):
            return f"somebody else publishes it too: ResourceSlice {min(others)}"
        namesake = NodeName(layout.name)
        if namesake != layout.node and namesake in self._nodes:
            return f"it is named after another Node than {layout.node}"
        node = self._nodes.get(layout.node)
        if node is None:
            return f"there is no Node {layout.node}"
        return owner_reference_of(node)

    @property
    def nodes(self) -> Mapping[NodeName, Node]:
        """All Nodes by name; of each only the metadata."""
        return self._nodes

    def labels_of(self, name: NodeName) -> Mapping[str, str]:
        """Return the labels of a Node; none when it is not known."""
        node = self._nodes.get(name)
        return {} if node is None else node.metadata.labels

    def foreign(self) -> frozenset[ForeignPool]:
        """Name the pools with slices that are not ours."""
        return frozenset(self._foreign.values())

    def is_known(self, name: str, raw: Mapping[str, Any]) -> bool:
        """True if a slice is what our write answered with, so need not be read."""
        ours = self._ours.get(name)
        version: str = raw["metadata"]["resourceVersion"]
        return ours is not None and ours.metadata.resource_version == version

    # --- changes --------------------------------------------------------------------

    def apply_slice(
        self, name: str, observed: ResourceSlice | None
    ) -> frozenset[PoolID]:
        """Note a slice (None: it is gone); returns the pools of ours concerned."""
        if observed is None:
            gone = self._ours.remove(name)
            return (
                self._forget_foreign(name) if gone is None else self._forget_slice(gone)
            )
        if not is_our_name(name, observed.spec):
            return self._put_foreign(observed)
        if not self._ours.put(observed):
            return frozenset()
        pool = pool_of(observed.spec)
        self._of_pool.setdefault(pool, set()).add(name)
        return frozenset({pool})

    def apply_node(self, name: NodeName, node: Node | None) -> bool:
        """Note a Node (None: it is gone); returns whether slices depend on that."""
        old = self._nodes.get(name)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        return _identity_of_node(old) != _identity_of_node(node)

    def note_written(self, sent: ResourceSlice, kept: ResourceSlice) -> tuple[str, ...]:
        """Note the answer to a write; returns the fields that were not kept.

        Features that are switched off cost their fields: writing again would not
        help, so what was kept counts as what was sent.
        """
        name = kept.metadata.name
        self.apply_slice(name, kept)
        self._stored.pop(name, None)
        if sent.spec == kept.spec:
            return ()
        self._stored[name] = _Stored(sent.spec, kept.spec)
        fields = _list_differences(
            to_builtins(sent.spec), to_builtins(kept.spec), "spec"
        )
        return tuple(sorted(set(fields)))

    def note_deleted(self, ours: ResourceSlice) -> None:
        """Note that we deleted a slice."""
        self._ours.note_deleted(ours)
        self._forget_slice(ours)

    def forget_dropped(self) -> frozenset[PoolID]:
        """Let what was not kept be sent again, in case it would be now.

        Returns the pools to be looked at again.
        """
        pools = frozenset(pool_of(stored.kept) for stored in self._stored.values())
        self._stored.clear()
        return pools

    def _as_sent(self, ours: ResourceSlice) -> ResourceSlice:
        stored = self._stored.get(ours.metadata.name)
        if stored is None or stored.kept != ours.spec:
            return ours
        return replace(ours, spec=stored.sent)

    def _forget_slice(self, ours: ResourceSlice) -> frozenset[PoolID]:
        name, pool = ours.metadata.name, pool_of(ours.spec)
        self._stored.pop(name, None)
        names = self._of_pool.get(pool, set())
        names.discard(name)
        if not names:
            self._of_pool.pop(pool, None)
        return frozenset({pool})

    def _put_foreign(self, observed: ResourceSlice) -> frozenset[PoolID]:
        name, pool = observed.metadata.name, pool_of(observed.spec)
        foreign = ForeignPool(pool, observed.spec.node_name)
        if self._foreign.get(name) == foreign:
            return frozenset()
        touched = self._forget_foreign(name)
        self._foreign[name] = foreign
        self._others.setdefault(pool, set()).add(name)
        return touched | {pool}

    def _forget_foreign(self, name: str) -> frozenset[PoolID]:
        foreign = self._foreign.pop(name, None)
        if foreign is None:
            return frozenset()
        names = self._others[foreign.pool]
        names.discard(name)
        if not names:
            del self._others[foreign.pool]
        return frozenset({foreign.pool})


def _identity_of_node(node: Node | None) -> object:
    """Return what slices and rules depend on."""
    return None if node is None else (node.metadata.uid, node.metadata.labels)


def _list_differences(sent: Any, kept: Any, path: str) -> Iterator[str]:
    """Name what is missing or different; `[]` is any place of a list."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for key in sorted(sent.keys() | kept.keys()):
            yield from _list_differences(sent.get(key), kept.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for one, other in zip(sent, kept, strict=True):
            yield from _list_differences(one, other, f"{path}[]")
    elif sent != kept:
        yield path
