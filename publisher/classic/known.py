"""What is there of classic DRA: pods, contexts and claims, and what the bus is told.

The bus carries v1 whatever is served: classes and slices are said in v1, and of claims
what they hold. Knows no plan and no network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from contracts.alpha.claims import Known, claim_to_v1, class_to_v1
from contracts.alpha.convert import convert
from contracts.alpha.pods import lift_sources
from contracts.alpha.said import Json, Remarks, list_in, mapping_in, text_in
from contracts.alpha.slices import pool_of, slice_to_v1
from contracts.claim import ResourceClaim, ResourceClaimSpec
from contracts.errors import ContractsError
from contracts.kubernetes.decode import V1, decode_object
from contracts.names import ALLOCATE, IMMEDIATE
from contracts.pods.membership import Membership, WorkloadAPI, read_membership
from contracts.workload import Pod
from publisher.classic.objects import (
    CLAIM_PARAMETERS,
    CLASS_PARAMETERS,
    CONTEXT,
    RESOURCE_CLASS,
    V1ALPHA2,
    ClassicClaim,
    SchedulingContext,
    read_allocation,
    read_context,
)
from publisher.gang_names import keep_valid_name
from publisher.gangs.view import GroupKey, claim_keys, group_of_claim
from publisher.kube.changes import Change
from runtime.kube.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_SLICE

_SIZED = frozenset({WorkloadAPI.KUEUE, WorkloadAPI.LEADER_WORKER_SET})
"""APIs whose pods say themselves how many they are."""
_REFERRED = (RESOURCE_CLASS.name, CLAIM_PARAMETERS.name, CLASS_PARAMETERS.name)
"""Kinds of v1alpha2 that claims refer to."""


class ClassicView:
    """Objects by kind and key, and what concerns which gang."""

    def __init__(
        self,
        version: str,
        controllers: Collection[str],
        apis: Iterable[WorkloadAPI] = (),
    ) -> None:
        """`version` is what is served of resource.k8s.io; `controllers` are we."""
        self.version = version
        self._controllers = frozenset(controllers)
        self._apis = _SIZED & frozenset(apis)
        self._raw: dict[tuple[str, str], Json] = {}
        self._known: Known | None = None
        self._pods: dict[str, Pod] = {}
        self._groups: dict[GroupKey, set[str]] = {}
        self._users: dict[str, set[str]] = {}
        """Claim key -> keys of the pods that use it."""
        self._read: dict[str, tuple[Json, Known, ClassicClaim]] = {}
        """Claims as they were read, each with what it was read from."""
        self._said = 0

    # --- in ---------------------------------------------------------------------------

    def take(self, change: Change) -> frozenset[GroupKey]:
        """Take in an object as it is now; returns the gangs that it may concern.

        Raises:
            ContractsError: a pod cannot be read; it is then as if it were gone.
        """
        if change.object is None:
            self._raw.pop((change.kind, change.key), None)
        elif self._is_old(change.kind, change.key, change.object):
            return frozenset()
        else:
            self._raw[change.kind, change.key] = change.object
        match change.kind:
            case POD.name:
                return self._take_pod(change.key, change.object)
            case CONTEXT.name:
                return self._groups_of([change.key])
            case RESOURCE_CLAIM.name:
                users = self._groups_of(self._users.get(change.key, ()))
                return users | {group_of_claim(change.key)}
            case kind if kind in _REFERRED:
                self._known = None
                return frozenset(self.groups())
            case _:
                return frozenset()

    def _is_old(self, kind: str, key: str, raw: Json) -> bool:
        """True if a newer state of an object is known: by the answer to our write."""
        known = mapping_in(self._raw.get((kind, key), {}), "metadata")
        meta = raw["metadata"]
        is_same = known.get("uid") == meta["uid"]
        return is_same and int(known["resourceVersion"]) > int(meta["resourceVersion"])

    def _take_pod(self, key: str, raw: Json | None) -> frozenset[GroupKey]:
        before = self._pods.pop(key, None)
        concerned = self._groups_of([key]) if before is None else self._drop(before)
        if raw is not None:
            pod = decode_object(lift_sources(raw)).value
            if isinstance(pod, Pod):
                self._pods[key] = pod
                group = self.group_of(pod)
                self._groups.setdefault(group, set()).add(key)
                for claim in claim_keys(pod).values():
                    self._users.setdefault(claim, set()).add(key)
                concerned |= {group}
        return concerned

    def _drop(self, pod: Pod) -> frozenset[GroupKey]:
        """Forget to whom a pod belonged and what it used."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        group = self.group_of(pod)
        _discard(self._groups, group, key)
        for claim in claim_keys(pod).values():
            _discard(self._users, claim, key)
        return frozenset({group})

    # --- what is there ----------------------------------------------------------------

    def groups(self) -> Iterator[GroupKey]:
        """Go through the gangs that there are pods or Immediate claims of."""
        yield from tuple(self._groups)
        for kind, key in tuple(self._raw):
            if kind == RESOURCE_CLAIM.name and self._is_immediate(key):
                yield group_of_claim(key)

    def pods(self, group: GroupKey) -> tuple[Pod, ...]:
        """Return the pods of a gang by name, those that have ended, too."""
        return tuple(self._pods[key] for key in sorted(self._groups.get(group, ())))

    def uids(self) -> frozenset[str]:
        """Return the uids of all pods."""
        return frozenset(pod.metadata.uid for pod in self._pods.values())

    def membership(self, pod: Pod) -> Membership:
        """Return which gang a pod belongs to."""
        return keep_valid_name(read_membership(pod, self._apis), pod)

    def group_of(self, pod: Pod) -> GroupKey:
        """Return the gang that a pod belongs to."""
        found = self.membership(pod)
        return GroupKey(
            found.namespace, found.group, found.is_lone, str(found.api or "")
        )

    def context(self, pod: Pod) -> SchedulingContext | None:
        """Return what kube-scheduler asks about a pod; None: nothing yet."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        raw = self._raw.get((CONTEXT.name, key))
        context = None if raw is None else read_context(raw, key)
        is_its = context is not None and context.pod_uid == pod.metadata.uid
        return context if is_its else None

    def claim(self, key: str) -> ClassicClaim | None:
        """Return a claim; None: there is none."""
        raw = self._raw.get((RESOURCE_CLAIM.name, key))
        if raw is None:
            self._read.pop(key, None)
            return None
        known = self._known_now()
        read = self._read.get(key)
        if read is None or read[0] is not raw or read[1] is not known:
            read = self._read[key] = (raw, known, self._read_claim(raw, key))
        return read[2]

    def claims_of(self, pod: Pod) -> dict[str, ClassicClaim]:
        """Return the claims of a pod that are there, by the pod's names for them."""
        found = {name: self.claim(key) for name, key in claim_keys(pod).items()}
        return {name: claim for name, claim in found.items() if claim is not None}

    def lacks_claims(self, pod: Pod) -> bool:
        """True if a claim of a pod is not there yet."""
        unneeded = {
            status.name
            for status in pod.status.resource_claim_statuses
            if status.resource_claim_name is None
        }
        names = {claim.name for claim in pod.spec.resource_claims} - unneeded
        return bool(names - self.claims_of(pod).keys())

    def claims(self) -> Iterator[str]:
        """Go through the keys of all claims."""
        kinds = tuple(self._raw)
        return (key for kind, key in kinds if kind == RESOURCE_CLAIM.name)

    def _groups_of(self, pods: Iterable[str]) -> frozenset[GroupKey]:
        found = (self._pods.get(key) for key in tuple(pods))
        return frozenset(self.group_of(pod) for pod in found if pod is not None)

    def _read_claim(self, raw: Json, key: str) -> ClassicClaim:
        meta, status = mapping_in(raw, "metadata"), mapping_in(raw, "status")
        spec, fault = self._read_spec(raw)
        parameters = self._parameters_of(raw)
        return ClassicClaim(
            key=key,
            uid=text_in(meta, "uid"),
            resource_version=text_in(meta, "resourceVersion"),
            controller=self._controller_of(raw),
            finalizers=tuple(list_in(meta, "finalizers")),
            is_deleted=bool(meta.get("deletionTimestamp")),
            is_immediate=self._is_immediate(key),
            is_allocated=bool(status.get("allocation")),
            is_unwanted=bool(status.get("deallocationRequested")),
            is_shareable=not parameters or bool(parameters.get("shareable")),
            reserved_for=tuple(list_in(status, "reservedFor")),
            spec=spec,
            fault=fault,
        )

    def _controller_of(self, raw: Json) -> str:
        """Return which of us is to allocate a claim, or has; empty: none of us."""
        spec, status = mapping_in(raw, "spec"), mapping_in(raw, "status")
        if self.version == V1ALPHA2:
            class_name = text_in(spec, "resourceClassName")
            of_class = self._known_now().driver_of(class_name)
            found = self._raw.get((RESOURCE_CLASS.name, class_name), {})
            if found.get("structuredParameters"):  # kube-scheduler allocates these
                return ""
            name = text_in(status, "driverName") or of_class
        else:
            name = text_in(status, "allocation", "controller")
            name = name or text_in(spec, "controller")
        return name if name in self._controllers else ""

    def _is_immediate(self, key: str) -> bool:
        raw = self._raw[RESOURCE_CLAIM.name, key]
        if text_in(raw, "spec", "allocationMode") == IMMEDIATE:
            return bool(self._controller_of(raw))
        label = text_in(raw, "metadata", "labels", ALLOCATE)
        return label == IMMEDIATE and bool(self._controller_of(raw))

    def _read_spec(self, raw: Json) -> tuple[ResourceClaimSpec | None, str]:
        """Return what a claim asks for in v1, or why that cannot be said."""
        plain = {**raw, "status": {}}
        remarks = Remarks(raw)
        try:
            if self.version == V1ALPHA2:
                value: Any = claim_to_v1(plain, self._known_now(), remarks)
            else:
                (done,) = convert([("", plain)])
                value, remarks.found = done.value, list(done.remarks)
            if remarks.has_errors or value is None:
                faults = (str(found) for found in remarks.found if found.is_error)
                return None, "; ".join(faults)
            claim = decode_object(value).value
        except ContractsError as error:
            return None, str(error)
        return (claim.spec, "") if isinstance(claim, ResourceClaim) else (None, "")

    def _parameters_of(self, raw: Json) -> Json:
        reference = mapping_in(raw, "spec", "parametersRef")
        namespace = text_in(raw, "metadata", "namespace")
        return self._known_now().find_parameters(reference, namespace, "", Remarks(raw))

    def _known_now(self) -> Known:
        if self._known is None:
            self._known = Known(
                raw for (kind, _), raw in self._raw.items() if kind in _REFERRED
            )
        return self._known

    # --- what the bus is told ---------------------------------------------------------

    def to_v1(self, change: Change) -> tuple[Change, ...]:
        """Say a change in v1, after it was taken in; what v1 cannot say is gone."""
        match change.kind:
            case RESOURCE_CLAIM.name:
                return (_changed(change, self._claim_to_v1),)
            case DEVICE_CLASS.name:
                return (_changed(change, _convert),)
            case RESOURCE_CLASS.name:
                return (self._class_to_v1(change.key),)
            case CLASS_PARAMETERS.name:
                kinds = tuple(self._raw)
                classes = [key for kind, key in kinds if kind == RESOURCE_CLASS.name]
                return tuple(map(self._class_to_v1, classes))
            case RESOURCE_SLICE.name if self.version == V1ALPHA2:
                return self._pools_to_v1(change)
            case RESOURCE_SLICE.name:
                return (_changed(change, _convert),)
            case CONTEXT.name | CLAIM_PARAMETERS.name:
                return ()
            case _:
                return (change,)

    def _claim_to_v1(self, raw: Json) -> Json | None:
        """Say what a claim holds, or that it holds nothing that is known."""
        allocation = read_allocation(self.version, raw)
        if allocation is not None:
            devices = mapping_in(allocation, "devices")
            allocation["devices"] = _with_admin_access(raw, devices)
        status = {} if allocation is None else {"allocation": allocation}
        meta = mapping_in(raw, "metadata")
        return _of_v1(RESOURCE_CLAIM.name, meta) | {"status": status}

    def _class_to_v1(self, key: str) -> Change:
        """Say a ResourceClass as the DeviceClass that claims of v1 name."""
        raw = self._raw.get((RESOURCE_CLASS.name, key))
        if raw is None:
            return Change(DEVICE_CLASS.name, key, None)
        remarks = Remarks(raw)
        value: Json = class_to_v1(raw, self._known_now(), remarks)
        # It may be another one though the class itself has not changed.
        value["metadata"] = {**value["metadata"], "resourceVersion": self._next()}
        done = None if remarks.has_errors else value
        return Change(DEVICE_CLASS.name, key, done)

    def _pools_to_v1(self, change: Change) -> tuple[Change, ...]:
        """Say the slices of a pool again once another one comes or goes."""
        slices = {
            key: raw
            for (kind, key), raw in tuple(self._raw.items())
            if kind == RESOURCE_SLICE.name
        }
        gone = change.object is None
        pool = None if change.object is None else pool_of(change.object)
        own = {k: r for k, r in slices.items() if gone or pool_of(r) == pool}
        counts: dict[tuple[str, str], int] = {}
        for raw in slices.values():
            counts[pool_of(raw)] = counts.get(pool_of(raw), 0) + 1
        said = [change] if gone else []
        for key, raw in own.items():
            remarks = Remarks(raw)
            value: Json = slice_to_v1(raw, counts[pool_of(raw)], remarks)
            value["metadata"] = {**value["metadata"], "resourceVersion": self._next()}
            done = None if remarks.has_errors else value
            said.append(Change(RESOURCE_SLICE.name, key, done))
        return tuple(said)

    def _next(self) -> str:
        """Return the version of what changes though its object does not."""
        self._said += 1
        return str(self._said)


def _with_admin_access(raw: Json, devices: Json) -> Json:
    """Say in results which of them hold nothing; v1alpha3 says it in requests alone."""
    requests = list_in(raw, "spec", "devices", "requests")
    watching = {request["name"] for request in requests if request.get("adminAccess")}
    results = [
        {**result, **({"adminAccess": True} if result["request"] in watching else {})}
        for result in devices.get("results") or ()
    ]
    return {**devices, "results": results}


def _convert(raw: Json) -> Json | None:
    (done,) = convert([("", raw)])
    return done.value if isinstance(done.value, dict) else None


def _changed(change: Change, to_v1: Callable[[Json], Json | None]) -> Change:
    raw = change.object
    value = None if raw is None else to_v1(raw)
    return Change(change.kind, change.key, value, change.uid)


def _of_v1(kind: str, metadata: Json) -> Json:
    return {"apiVersion": V1, "kind": kind, "metadata": metadata}


def _discard(index: dict[Any, set[str]], key: object, value: str) -> None:
    found = index.get(key, set())
    found.discard(value)
    if not found:
        index.pop(key, None)
