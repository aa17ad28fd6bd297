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
from publisher.slices.layout import WantedPool, is_our_name, owner_reference, pool_id


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
        self._foreign: dict[str, ForeignPool] = {}
        self._others: dict[PoolID, set[str]] = {}
        self._nodes: dict[NodeName, Node] = {}
        self._stored: dict[str, _Stored] = {}

    # --- what is there --------------------------------------------------------------

    def pools(self) -> Iterable[PoolID]:
        """Name the pools of which slices of ours are there."""
        return tuple(self._of_pool)

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Give our slices of a pool, as if the API server had kept all that we sent."""
        names = sorted(self._of_pool.get(pool, ()))
        return tuple(
            self._as_sent(item) for name in names if (item := self._ours.get(name))
        )

    def owner(self, wanted: WantedPool) -> OwnerReference | str:
        """Refer to the Node of a pool, or say why no slices may be written."""
        pool = PoolID(wanted.driver, wanted.name)
        if others := self._others.get(pool):
            return f"somebody else publishes it, too: ResourceSlice {min(others)}"
        node = self._nodes.get(wanted.node)
        if node is None:
            return f"there is no Node {wanted.node}"
        return owner_reference(node)

    @property
    def nodes(self) -> Mapping[NodeName, Node]:
        """All Nodes by name; of each only the metadata."""
        return self._nodes

    def labels(self, node: NodeName) -> Mapping[str, str]:
        """Give the labels of a Node; none when it is not known."""
        known = self._nodes.get(node)
        return {} if known is None else known.metadata.labels

    def foreign(self) -> frozenset[ForeignPool]:
        """Name the pools with slices that are not ours."""
        return frozenset(self._foreign.values())

    def is_known(self, name: str, raw: Mapping[str, Any]) -> bool:
        """Whether a slice is what our write answered with, so need not be read."""
        known = self._ours.get(name)
        version: str = raw["metadata"]["resourceVersion"]
        return known is not None and known.metadata.resource_version == version

    # --- changes --------------------------------------------------------------------

    def apply_slice(self, name: str, item: ResourceSlice | None) -> frozenset[PoolID]:
        """Take a slice in (None: it is gone); gives the pools of ours concerned."""
        if item is None:
            gone = self._ours.remove(name)
            return self._forget_foreign(name) if gone is None else self._forget(gone)
        if not is_our_name(name, item.spec):
            return self._put_foreign(item)
        if not self._ours.put(item):
            return frozenset()
        pool = pool_id(item.spec)
        self._of_pool.setdefault(pool, set()).add(name)
        return frozenset({pool})

    def apply_node(self, name: NodeName, node: Node | None) -> bool:
        """Take a Node in (None: it is gone); says whether slices depend on that."""
        before = self._nodes.get(name)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        return _identity(before) != _identity(node)

    def wrote(self, sent: ResourceSlice, kept: ResourceSlice) -> tuple[str, ...]:
        """Take in the answer to a write; names the fields that were not kept.

        Features that are switched off cost their fields: writing again would not
        help, so what was kept counts as what was sent.
        """
        name = kept.metadata.name
        self.apply_slice(name, kept)
        self._stored.pop(name, None)
        if sent.spec == kept.spec:
            return ()
        self._stored[name] = _Stored(sent.spec, kept.spec)
        before, after = to_builtins(sent.spec), to_builtins(kept.spec)
        return tuple(sorted(set(_differences(before, after, "spec"))))

    def deleted(self, item: ResourceSlice) -> None:
        """Take in that we deleted a slice."""
        self._ours.note_deleted(item)
        self._forget(item)

    def forget_kept(self) -> frozenset[PoolID]:
        """Let what was not kept be sent again, in case it would be now."""
        pools = frozenset(pool_id(stored.kept) for stored in self._stored.values())
        self._stored.clear()
        return pools

    def _as_sent(self, item: ResourceSlice) -> ResourceSlice:
        stored = self._stored.get(item.metadata.name)
        if stored is None or stored.kept != item.spec:
            return item
        return replace(item, spec=stored.sent)

    def _forget(self, item: ResourceSlice) -> frozenset[PoolID]:
        name, pool = item.metadata.name, pool_id(item.spec)
        self._stored.pop(name, None)
        names = self._of_pool.get(pool, set())
        names.discard(name)
        if not names:
            self._of_pool.pop(pool, None)
        return frozenset({pool})

    def _put_foreign(self, item: ResourceSlice) -> frozenset[PoolID]:
        name, pool = item.metadata.name, pool_id(item.spec)
        seen = ForeignPool(pool, item.spec.node_name)
        if self._foreign.get(name) == seen:
            return frozenset()
        touched = self._forget_foreign(name)
        self._foreign[name] = seen
        self._others.setdefault(pool, set()).add(name)
        return touched | {pool}

    def _forget_foreign(self, name: str) -> frozenset[PoolID]:
        known = self._foreign.pop(name, None)
        if known is None:
            return frozenset()
        names = self._others[known.pool]
        names.discard(name)
        if not names:
            del self._others[known.pool]
        return frozenset({known.pool})


def _identity(node: Node | None) -> object:
    """Give what slices and rules depend on."""
    return None if node is None else (node.metadata.uid, node.metadata.labels)


def _differences(sent: Any, kept: Any, path: str) -> Iterator[str]:
    """Name what is missing or different; `[]` is any place of a list."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for key in sorted(sent.keys() | kept.keys()):
            yield from _differences(sent.get(key), kept.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for one, other in zip(sent, kept, strict=True):
            yield from _differences(one, other, f"{path}[]")
    elif sent != kept:
        yield path
