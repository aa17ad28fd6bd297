"""Pods, claims, Gang objects and nodes as the API server says, applied one by one.

Fills the View from pages of changes and from the answers to our own writes. An object
that cannot be read is named and left out; everything else goes on. Decides nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from contracts.claim import ResourceClaim
from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import decode_object
from contracts.messages import MAX_REASON
from contracts.names import OF_CLAIM
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import OwnerKey, WorkloadAPI, list_owner_kinds
from contracts.workload import Pod
from publisher.cluster.compact import compact
from publisher.gangs.bypassed_pods import BypassedPods
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.offered_devices import read_offered
from publisher.gangs.running.avoidance import SeenRefusals
from publisher.gangs.view import GroupKey, View, claims_of
from publisher.kube.changes import ChangePage
from runtime.kube.kinds import GANG, NODE, POD, STORAGE_KINDS, Kind
from runtime.kube.lenient import ALTERED
from runtime.log import get_logger

_SLICE = "ResourceSlice"
_DIGEST = 16
"""Characters that tell states of a node apart."""

log = get_logger(__name__)


class Observer:
    """Fills the View with what the API server shows."""

    def __init__(
        self,
        claims: Kind,
        changed: Callable[[Iterable[GroupKey]], Awaitable[None]],
        apis: Iterable[WorkloadAPI] = (),
        *,
        now: Callable[[], str],
        late_gates: Iterable[str] = (),
        bypassed: BypassedPods | None = None,
        allocates_alone: bool = False,
    ) -> None:
        """`claims` is the kind ResourceClaim in the version that the cluster serves.

        `changed` is told which groups a page of changes is about; `apis` put pods
        together that have no label of ours; the others: see `View`.
        """
        self.view = View(
            frozenset(apis), late_gates, bypassed, allocates_alone=allocates_alone
        )
        self._owners = list_owner_kinds(apis)
        self.refusals = SeenRefusals()
        """Pods that kube-scheduler refuses, and since when."""
        self._now = now
        self._kinds = {kind.name: kind for kind in (POD, claims, GANG)}
        self._changed = changed
        self.statuses: dict[str, dict[str, Any]] = {}
        """The status of each Gang object, by `namespace/name`."""
        self.unreadable: dict[tuple[str, str], str] = {}
        """Why objects that are there cannot be read, by kind and key."""

    @property
    def kinds(self) -> frozenset[str]:
        """Name the kinds whose pages are to be taken in."""
        storage = (kind.name for kind in STORAGE_KINDS)
        others = (NODE.name, _SLICE, *storage, *self._owners)
        return frozenset({*self._kinds, *others})

    def kind(self, name: str) -> Kind:
        """Return a kind by its name, in the version that the cluster serves."""
        return self._kinds[name]

    def gang_of(self, key: str) -> tuple[Gang | None, Mapping[str, Any]]:
        """Return the Gang object of a key, and its status."""
        namespace, _, name = key.partition("/")
        gang = self.view.gang(GroupKey(namespace, name))
        return gang, self.statuses.get(key, {})

    async def take(self, page: ChangePage) -> None:
        """Apply a page of changes, and tell of the groups that it is about."""
        touched: set[GroupKey] = set()
        for change in page.changes:
            touched |= self.apply(change.kind, change.key, change.object, change.uid)
        if touched:
            await self._changed(touched)

    def apply(
        self, kind: str, key: str, raw: dict[str, Any] | None, uid: str
    ) -> frozenset[GroupKey]:
        """Apply one object as it is now (None: the one with that uid is gone).

        Returns the groups that it is about. The caller has them looked at, unless it
        is about to look itself.
        """
        if kind == NODE.name:
            return self.view.apply_node(key, None if raw is None else _read_node(raw))
        if kind == _SLICE:
            offered = None if raw is None else read_offered(raw)
            return self.view.groups_using(self.view.offered.apply_slice(key, offered))
        if kind in self._owners:
            return self._apply_owner(kind, key, raw)
        if raw is not None and self._is_applied(kind, key, raw["metadata"]):
            return frozenset()
        self.unreadable.pop((kind, key), None)
        if raw is not None and ALTERED in raw:
            self.unreadable[kind, key] = str(raw[ALTERED])
        try:
            value = None if raw is None else decode_object(raw).value
        except ContractsError as error:
            _log_refusal(kind, key, error)
            self.unreadable[kind, key] = str(error)[:MAX_REASON]
            return self._groups_of(kind, key)
        match kind:
            case "Pod" if value is None or isinstance(value, Pod):
                whose = uid if value is None else value.metadata.uid
                self.refusals.apply(whose, value, self._now())
                return self.view.apply_pod(key, value, uid)
            case "ResourceClaim" if value is None or isinstance(value, ResourceClaim):
                return self.view.apply_claim(key, value, uid)
            case "Gang" if value is None or isinstance(value, Gang):
                self._keep_status(key, raw)
                return self.view.apply_gang(key, value, uid)
            case "PersistentVolumeClaim" | "PersistentVolume" | "StorageClass":
                pods = self.view.volumes.apply(kind, key, value)
                return self.view.waiting_groups(pods)
            case _:
                return frozenset()

    def find_unreadable(self, group: GroupKey) -> str:
        """Name what a group depends on and cannot be read; empty: all can be.

        What was known of it before does not count: nothing is decided by it.
        """
        if not self.unreadable:
            return ""
        pods = self.view.pods(group)
        names = [("Pod", f"{p.metadata.namespace}/{p.metadata.name}") for p in pods]
        names += [("ResourceClaim", key) for key in claims_of(pods)]
        if group.api == OF_CLAIM:
            names.append(("ResourceClaim", str(group)))
        for kind, key in (*names, ("Gang", str(group))):
            reason = self.unreadable.get((kind, key))
            if reason is not None:
                return f"{kind} {key}: {reason}"
        return ""

    def _groups_of(self, kind: str, key: str) -> frozenset[GroupKey]:
        """Name the groups that an object concerns which cannot be read."""
        if kind == "ResourceClaim":
            return self.view.groups_using((key,))
        namespace, _, name = key.partition("/")
        pod = self.view.pod(key) if kind == "Pod" else None
        group = GroupKey(namespace, name) if pod is None else self.view.group_of(pod)
        return frozenset({group}) if self.view.has_group(group) else frozenset()

    def _apply_owner(
        self, kind: str, key: str, raw: dict[str, Any] | None
    ) -> frozenset[GroupKey]:
        """Apply an object that says a gang's size; one that cannot be read says none.

        So its pods wait, rather than by the size that it had before.
        """
        owner = None
        try:
            owner = None if raw is None else read_gang_owner(raw)
        except ContractsError as error:
            _log_refusal(kind, key, error)
        namespace, _, name = key.partition("/")
        return self.view.apply_owner(OwnerKey(kind, namespace, name), owner)

    def _is_applied(self, kind: str, key: str, metadata: dict[str, Any]) -> bool:
        """True if just this version was applied: the answer to a write comes twice."""
        version = metadata.get("resourceVersion", "")
        return version != "" and self.view.has(
            kind, key, metadata.get("uid", ""), version
        )

    def _keep_status(self, key: str, raw: dict[str, Any] | None) -> None:
        if raw is None:
            self.statuses.pop(key, None)
        else:
            self.statuses[key] = raw.get("status") or {}


def _log_refusal(kind: str, key: str, error: ContractsError) -> None:
    log.error("object.refused", kind=kind, key=key, reason=str(error)[:MAX_REASON])


def _read_node(node: dict[str, Any]) -> KnownNode:
    """Read a node's labels, and a digest of all that pods depend on."""
    body = msgspec.json.encode(compact(node), order="sorted")
    digest = hashlib.sha256(body).hexdigest()[:_DIGEST]
    return KnownNode(state=digest, labels=node["metadata"].get("labels") or {})
