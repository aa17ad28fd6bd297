"""A tiny cluster in memory, in which the laws of plans are tried on many interleavings.

Objects with versions, merge patches with preconditions, the controller manager's and
kube-scheduler's part in the life of claims, in the simplest form. Nothing here proves
anything about Kubernetes: that is what tests/integration is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from contracts.codec import to_builtins
from contracts.kubernetes.decode import decode_object
from contracts.names import ALLOCATE, FINALIZER, GATE, IMMEDIATE
from contracts.pods.node_affinity import read_pinned_node
from publisher.gangs.patches import Patch, Purpose
from tests import builders

Json = dict[str, Any]
ENDED = ("Succeeded", "Failed")
MOST_RESERVED = 256
BEGAN = datetime(2026, 11, 20, 12, tzinfo=UTC)
UNFIT = "0/1 nodes are available: 1 node(s) are not fit"
"""What kube-scheduler says of a node that it refuses."""
PREEMPTED = "preempting to accommodate a higher priority pod"
DELETED = "2026-11-20T12:00:00Z"
THEIRS = "their"
"""Begins the names of a pod's claims that are left to kube-scheduler."""


class Refused(Exception):  # noqa: N818 # what it is, not what went wrong
    """A write that the API server does not take: `conflict`, `gone` or `invalid`."""

    def __init__(self, why: str, what: str) -> None:
        self.why = why
        super().__init__(f"{why}: {what}")


class Written(Struct, frozen=True):
    """A write that was taken."""

    patch: Patch
    before: Json
    after: Json


class Seen(Struct, frozen=True):
    """A change as publishers hear of it: decoded once for all of them."""

    kind: str
    key: str
    value: Any
    """None: the object with that uid is gone."""
    uid: str


class World:
    """Objects by kind and key, and every change of them in order."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.values: dict[tuple[str, str], Any] = {}
        """The same, decoded."""
        self.changes: list[Seen] = []
        self.writes: list[Written] = []
        self.watchers: list[Callable[[Written], None]] = []
        """Called with each write of a publisher that was taken."""
        self.damaged: dict[str, int] = {}
        """Claims that others than publishers changed, and when: a place in changes."""
        self.made: dict[tuple[str, str], int] = {}
        """When objects came under their keys."""
        self.planned = 0
        """How many changes were known to whoever planned the write that comes next."""
        self.unfit: set[str] = set()
        """Nodes that kube-scheduler refuses, for a reason that nobody else sees."""
        self.passed_s = 0
        """How much time has passed."""
        self._version = 0

    @property
    def now(self) -> str:
        """The time: RFC 3339, whole seconds, UTC."""
        return (BEGAN + timedelta(seconds=self.passed_s)).strftime("%Y-%m-%dT%H:%M:%SZ")

    # --- objects --------------------------------------------------------------------

    def get(self, kind: str, key: str) -> Json | None:
        """Give an object as it is."""
        return self.objects.get((kind, key))

    def all(self, kind: str) -> Iterator[tuple[str, Json]]:
        """Go through the objects of a kind, by key."""
        keys = sorted(key for its_kind, key in self.objects if its_kind == kind)
        return ((key, self.objects[kind, key]) for key in keys)

    def put(self, kind: str, key: str, raw: Json) -> Json:
        """Store a new version of an object."""
        self._version += 1
        if (kind, key) not in self.objects:
            self.made[kind, key] = len(self.changes) + 1
        version = {"resourceVersion": str(self._version)}
        stored = {**raw, "kind": kind, "metadata": {**raw["metadata"], **version}}
        self.objects[kind, key] = stored
        self.values[kind, key] = decode_object(stored).value
        uid = str(stored["metadata"]["uid"])
        self.changes.append(Seen(kind, key, self.values[kind, key], uid))
        return stored

    def remove(self, kind: str, key: str) -> None:
        """Delete an object for good."""
        gone = self.objects.pop((kind, key))
        del self.values[kind, key]
        self.changes.append(Seen(kind, key, None, str(gone["metadata"]["uid"])))

    def change(self, kind: str, key: str, body: Json) -> Json:
        """Change an object without preconditions, as its owner does."""
        return self.put(kind, key, merge_patch(self.objects[kind, key], body))

    # --- writes of publishers -------------------------------------------------------

    def patch(self, patch: Patch) -> Json:
        """Take a merge patch, or raise Refused."""
        before = self.get(patch.kind, patch.key)
        if before is None:
            raise Refused("gone", patch.key)
        meta, wanted = before["metadata"], patch.body["metadata"]
        for field in ("uid", "resourceVersion"):
            if wanted[field] != meta[field]:
                raise Refused("conflict", f"{patch.key}: {field}")
        after = merge_patch(before, patch.body)
        if patch.subresource == "status":
            after = {**before, "status": after["status"]}
        elif "status" in before:
            after["status"] = before["status"]
        _validate(before, after)
        stored = self.put(patch.kind, patch.key, after)
        written = Written(patch, before, stored)
        self.writes.append(written)
        for watch in self.watchers:
            watch(written)
        return stored

    # --- others ---------------------------------------------------------------------

    def delete_pod(self, key: str) -> None:
        """Delete a pod; the claims made for it go once they are free."""
        uid = self.objects["Pod", key]["metadata"]["uid"]
        self.remove("Pod", key)
        for name, claim in list(self.all("ResourceClaim")):
            if claim["metadata"].get("owner") == uid:
                self.delete_claim(name)

    def terminate_pod(self, key: str) -> None:
        """Begin to delete a pod that has a grace period."""
        self.change("Pod", key, {"metadata": {"deletionTimestamp": DELETED}})

    def preempt_pod(self, key: str) -> None:
        """Begin to delete a pod for another; it says so first."""
        condition = {"type": "DisruptionTarget", "status": "True"}
        condition |= {"reason": "PreemptionByScheduler", "message": PREEMPTED}
        self.change("Pod", key, {"status": {"conditions": [condition]}})
        self.terminate_pod(key)

    def bury_pods(self) -> None:
        """Let the grace of pods end."""
        for key, pod in list(self.all("Pod")):
            if pod["metadata"].get("deletionTimestamp"):
                self.delete_pod(key)

    def delete_claim(self, key: str) -> None:
        """Delete a claim; one with a finalizer goes once it is free."""
        claim = self.objects["ResourceClaim", key]
        if not claim["metadata"].get("finalizers"):
            self.remove("ResourceClaim", key)
            return
        body = {"metadata": {"deletionTimestamp": DELETED}}
        self.change("ResourceClaim", key, body)

    def damage(self, key: str, status: Json | None) -> None:
        """Let somebody else change what a claim holds (None: delete the claim)."""
        if status is None:
            self.delete_claim(key)
        else:
            self.change("ResourceClaim", key, {"status": status})
        self.damaged[key] = len(self.changes)

    def control(self) -> bool:
        """Do the controller manager's part for every claim; False: nothing to do."""
        before = len(self.changes)
        for key, claim in list(self.all("ResourceClaim")):
            self._control_claim(key, claim)
        return len(self.changes) > before

    def _control_claim(self, key: str, claim: Json) -> None:
        meta, status = claim["metadata"], claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        kept = [user for user in reserved if self._may_keep(key, user)]
        managed = FINALIZER in (meta.get("finalizers") or ())
        if kept != reserved:
            body: Json = {"reservedFor": kept or None}
            if not kept and managed:
                body = {"reservedFor": None, "allocation": None}
            claim = self.change("ResourceClaim", key, {"status": body})
        elif meta.get("deletionTimestamp") and not kept and status.get("allocation"):
            body = {"status": {"allocation": None}}
            claim = self.change("ResourceClaim", key, body)
        freed = kept != reserved or bool(meta.get("deletionTimestamp"))
        if managed and freed and not (claim.get("status") or {}).get("allocation"):
            self.change("ResourceClaim", key, {"metadata": {"finalizers": None}})
            if meta.get("deletionTimestamp"):
                self.remove("ResourceClaim", key)

    def _may_keep(self, claim: str, consumer: Json) -> bool:
        namespace = claim.partition("/")[0]
        pod = self.get("Pod", f"{namespace}/{consumer['name']}")
        if pod is None or pod["metadata"]["uid"] != consumer["uid"]:
            return False
        return pod["status"]["phase"] not in ENDED

    def schedule(self) -> bool:
        """Do kube-scheduler's part for every pod; False: nothing to do.

        Devices are tainted for it, so it allocates nothing by itself.
        """
        before = len(self.changes)
        for key, pod in list(self.all("Pod")):
            spec = pod["spec"]
            if is_over(pod) or spec.get("nodeName"):
                continue
            if not spec.get("schedulingGates"):
                self._schedule_pod(key, pod)
        return len(self.changes) > before

    def _schedule_pod(self, key: str, pod: Json) -> None:
        node = read_pinned_node(pod["spec"].get("affinity") or {})
        if not node or self.get("Node", node) is None:
            return
        for name in claims_of(key, pod):
            self._allocate_theirs(name, node)
        claims = {name: self.get("ResourceClaim", name) for name in claims_of(key, pod)}
        for claim in claims.values():
            held = claim and (claim.get("status") or {}).get("allocation")
            if not held or node not in nodes_of(held):
                return
        if node in self.unfit:
            self._refuse_pod(key, pod)
            return
        user = {"resource": "pods", "name": pod["metadata"]["name"]}
        user["uid"] = pod["metadata"]["uid"]
        for name, claim in claims.items():
            users = (claim or {})["status"].get("reservedFor") or []
            if user["uid"] not in {other["uid"] for other in users}:
                body = {"status": {"reservedFor": [*users, user]}}
                self.change("ResourceClaim", name, body)
        self.change("Pod", key, {"spec": {"nodeName": node}})

    def _refuse_pod(self, key: str, pod: Json) -> None:
        """Say that a pod does not fit on the only node that it may go to."""
        condition = {"type": "PodScheduled", "status": "False"}
        condition |= {"reason": "Unschedulable", "message": UNFIT}
        if pod["status"].get("conditions") != [condition]:
            self.change("Pod", key, {"status": {"conditions": [condition]}})

    def _allocate_theirs(self, key: str, node: str) -> None:
        """Allocate a claim that is kube-scheduler's, on the node of its pod."""
        claim = self.get("ResourceClaim", key)
        if claim is None or not is_theirs(claim) or devices_of(claim):
            return
        uid = uid_of(claim)
        held = builders.allocation(builders.result(uid, pool=node), node=node)
        body = {"status": {"allocation": to_builtins(held)}}
        self.change("ResourceClaim", key, body)


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def claims_of(key: str, pod: Json) -> list[str]:
    """Name the claims of a pod that are made, by `namespace/name`."""
    namespace = key.partition("/")[0]
    statuses = pod["status"].get("resourceClaimStatuses") or ()
    made = {status["name"]: status.get("resourceClaimName") for status in statuses}
    keys = []
    for claim in pod["spec"].get("resourceClaims") or ():
        name = claim.get("resourceClaimName") or made.get(claim["name"])
        keys.append(f"{namespace}/{name}")
    return keys


def nodes_of(allocation: Json) -> set[str]:
    """Name the nodes of an allocation of node-local devices."""
    terms = allocation["nodeSelector"]["nodeSelectorTerms"]
    return {value for term in terms for value in term["matchFields"][0]["values"]}


def devices_of(claim: Json) -> set[tuple[str, str]]:
    """Return the pool and name of each device that a claim holds."""
    held = (claim.get("status") or {}).get("allocation") or {}
    results = (held.get("devices") or {}).get("results") or ()
    return {(result["pool"], result["device"]) for result in results}


def is_gated(pod: Json) -> bool:
    """Whether our gate holds a pod back."""
    gates = pod["spec"].get("schedulingGates") or ()
    return any(gate["name"] == GATE for gate in gates)


def is_over(pod: Json) -> bool:
    """Whether a pod will not run any more."""
    ended = pod["status"]["phase"] in ENDED
    return ended or "deletionTimestamp" in pod["metadata"]


def is_theirs(claim: Json) -> bool:
    """Whether a claim is left to kube-scheduler."""
    return f"-{THEIRS}" in claim["metadata"]["name"]


def is_kept(claim: Json) -> bool:
    """Whether a claim holds devices without a pod."""
    labels = claim["metadata"].get("labels") or {}
    return labels.get(ALLOCATE) == IMMEDIATE


def uid_of(raw: Json) -> str:
    """Give the uid of an object."""
    return str(raw["metadata"]["uid"])


def is_opening(written: Written) -> bool:
    """Whether a write opened a gate."""
    return written.patch.purpose is Purpose.OPEN


def _validate(before: Json, after: Json) -> None:
    """Refuse what the API server would."""
    if before["kind"] == "Pod":
        _validate_gates(before["spec"], after["spec"])
    if before["kind"] != "ResourceClaim":
        return
    old = (before.get("status") or {}).get("allocation")
    status = after.get("status") or {}
    new, reserved = status.get("allocation"), status.get("reservedFor") or []
    if old and new and old != new:
        raise Refused("invalid", "status.allocation: field cannot be modified once set")
    if reserved and not new:
        raise Refused("invalid", "status.reservedFor: may not be specified")
    if len(reserved) > MOST_RESERVED:
        raise Refused("invalid", "status.reservedFor: Too many")
    old_finalizers = set(before["metadata"].get("finalizers") or ())
    added = set(after["metadata"].get("finalizers") or ()) - old_finalizers
    if before["metadata"].get("deletionTimestamp") and added:
        raise Refused("invalid", "metadata.finalizers: no new finalizers")


def _validate_gates(before: Json, after: Json) -> None:
    old = [gate["name"] for gate in before.get("schedulingGates") or ()]
    new = [gate["name"] for gate in after.get("schedulingGates") or ()]
    if not set(new) <= set(old):
        raise Refused("invalid", "spec.schedulingGates: only deletion is allowed")
    if not old and before.get("affinity") != after.get("affinity"):
        raise Refused("invalid", "spec.affinity: field is immutable")
    terms = [len(_terms(spec)) for spec in (before, after)]
    if terms[0] and terms[0] != terms[1]:
        raise Refused("invalid", "no additions/deletions to NodeSelectorTerms")


def _terms(spec: Json) -> list[Any]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required.get("nodeSelectorTerms") or ())
