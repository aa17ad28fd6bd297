"""Pods, claims, Gang objects and nodes as the API server says, believed one by one.

Fills the View from pages of changes and from the answers to our own writes. An object
that cannot be read is named and left out; everything else goes on. Decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from contracts.claim import ResourceClaim
from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import decode_object
from contracts.workload import Pod
from publisher.gangs.view import GroupKey, View
from publisher.kube.changes import ChangePage
from publisher.kube.kinds import GANG, NODE, POD, Kind
from runtime.log import get_logger

_SHOWN = 500

log = get_logger(__name__)


class Observer:
    """The View, and who is told when it changes."""

    def __init__(self, claims: Kind) -> None:
        """`claims` is the kind ResourceClaim in the version that the cluster serves."""
        self.view = View()
        self._kinds = {kind.name: kind for kind in (POD, claims, GANG)}
        self.statuses: dict[str, dict[str, Any]] = {}
        """The status of each Gang object, by `namespace/name`."""
        self.listener: Callable[[Iterable[GroupKey]], Awaitable[None]] | None = None
        """Told which groups changed."""
        self.counts: Counter[str] = Counter()
        """Objects taken in and refused, by kind."""

    @property
    def kinds(self) -> frozenset[str]:
        """Name the kinds whose pages are to be taken in."""
        return frozenset({*self._kinds, NODE.name})

    def kind(self, name: str) -> Kind:
        """Give a kind by its name, in the version that the cluster serves."""
        return self._kinds[name]

    async def take(self, page: ChangePage) -> None:
        """Believe a page of changes."""
        touched: set[GroupKey] = set()
        for change in page.changes:
            touched |= self.believe(change.kind, change.key, change.object, change.uid)
        if touched and self.listener is not None:
            await self.listener(touched)

    def believe(
        self, kind: str, key: str, raw: dict[str, Any] | None, uid: str
    ) -> frozenset[GroupKey]:
        """Believe one object as it is now (None: the one with that uid is gone)."""
        if kind == NODE.name:
            return self.view.apply_node(key, is_there=raw is not None)
        if raw is not None and self._is_known(kind, key, raw["metadata"]):
            return frozenset()
        try:
            value = None if raw is None else decode_object(raw).value
        except ContractsError as error:
            self.counts[f"{kind}.refused"] += 1
            log.error("object.refused", kind=kind, key=key, reason=str(error)[:_SHOWN])  # noqa: TRY400 # the reason is the whole story
            return frozenset()
        self.counts[kind] += 1
        match kind:
            case "Pod" if value is None or isinstance(value, Pod):
                return self.view.apply_pod(key, value, uid)
            case "ResourceClaim" if value is None or isinstance(value, ResourceClaim):
                return self.view.apply_claim(key, value, uid)
            case "Gang" if value is None or isinstance(value, Gang):
                self._keep_status(key, raw)
                return self.view.apply_gang(key, value, uid)
            case _:
                return frozenset()

    def _is_known(self, kind: str, key: str, metadata: dict[str, Any]) -> bool:
        """Whether just this version was believed: the answer to a write comes twice."""
        version = metadata.get("resourceVersion", "")
        known = self.view.has(kind, key, metadata.get("uid", ""), version)
        return known and version != ""

    def _keep_status(self, key: str, raw: dict[str, Any] | None) -> None:
        if raw is None:
            self.statuses.pop(key, None)
        else:
            self.statuses[key] = raw.get("status") or {}
