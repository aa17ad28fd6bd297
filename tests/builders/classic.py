"""Objects of classic DRA as an API server of 1.31 or 1.30 serves them, and a view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from contracts.ids import ClusterName
from contracts.lifecycle import LifecycleMessage
from contracts.messages import (
    ClaimAllocated,
    GangAllocated,
    GangPending,
    MemberAllocated,
    SubmitGang,
)
from contracts.names import GANG, GANG_SIZE
from contracts.pods.node_affinity import NODE_AFFINITY, REQUIRED
from publisher.classic.known import ClassicView
from publisher.classic.look import Look, look_at
from publisher.classic.objects import V1ALPHA2, V1ALPHA3
from publisher.classic.plan_gang import ClassicSteps, plan_gang
from publisher.gangs.records import PodGangRecords
from publisher.gangs.view import GroupKey
from publisher.kube.changes import Change
from tests.builders.claims import allocation, result
from tests.builders.decisions import gang_allocated, gang_pending
from tests.builders.values import NAMESPACE

Json = dict[str, Any]
CONTROLLER = "ours.example.com"
FINALIZER = f"{CONTROLLER}/deletion-protection"
CLUSTER = ClusterName("east")
NOW = "2026-11-28T18:00:00Z"
_versions = count(1)


def metadata(name: str, namespace: str = NAMESPACE, **more: Any) -> Json:
    """Name an object; each is newer than all before."""
    version = str(next(_versions))
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": version, **more}
    return {**meta, "namespace": namespace} if namespace else meta


def classic_claim(
    name: str,
    *,
    controller: str = CONTROLLER,
    status: Mapping[str, Any] | None = None,
    device_class: str = "gpu",
    **meta: Any,
) -> Json:
    """Make a claim of v1alpha3 for one device."""
    request = {"name": "r", "deviceClassName": device_class}
    spec: Json = {"devices": {"requests": [request]}}
    if controller:
        spec["controller"] = controller
    return {
        "apiVersion": f"resource.k8s.io/{V1ALPHA3}",
        "kind": "ResourceClaim",
        "metadata": metadata(name, **meta),
        "spec": spec,
        "status": dict(status or {}),
    }


def old_claim(name: str, *, mode: str = "", **meta: Any) -> Json:
    """Make a claim of v1alpha2 for one device of the class `gpu`."""
    mode = mode or "WaitForFirstConsumer"
    spec = {"resourceClassName": "gpu", "allocationMode": mode}
    return {
        "apiVersion": f"resource.k8s.io/{V1ALPHA2}",
        "kind": "ResourceClaim",
        "metadata": metadata(name, **meta),
        "spec": spec,
        "status": {},
    }


def resource_class(driver: str = CONTROLLER, **fields: Any) -> Json:
    """Make the class `gpu` of v1alpha2."""
    return {
        "apiVersion": f"resource.k8s.io/{V1ALPHA2}",
        "kind": "ResourceClass",
        "metadata": metadata("gpu", ""),
        "driverName": driver,
        **fields,
    }


def context(
    pod: str,
    potential: Sequence[str] = (),
    selected: str = "",
    said: Mapping[str, Sequence[str]] = {},
) -> Json:
    """Make what kube-scheduler asks about a pod; `said` is by claim of the pod."""
    owner = {"kind": "Pod", "name": pod, "uid": f"uid-{pod}", "controller": True}
    spec: Json = {"potentialNodes": list(potential)}
    if selected:
        spec["selectedNode"] = selected
    return {
        "apiVersion": f"resource.k8s.io/{V1ALPHA3}",
        "kind": "PodSchedulingContext",
        "metadata": metadata(pod, ownerReferences=[owner]),
        "spec": spec,
        "status": {
            "resourceClaims": [
                {"name": name, "unsuitableNodes": list(nodes)}
                for name, nodes in said.items()
            ]
        },
    }


def classic_pod(
    name: str,
    claims: Mapping[str, str],
    *,
    gang: str = "",
    size: int = 0,
    node: str = "",
    phase: str = "Pending",
    annotations: Mapping[str, str] = {},
    generated: bool = False,
) -> Json:
    """Make a pod that names claims, by its own names for them.

    `generated`: they were made for it from templates.
    """
    notes = {**annotations, **({GANG_SIZE: str(size)} if size else {})}
    labels = {GANG: gang} if gang else {}
    entries = [{"name": n, "resourceClaimName": c} for n, c in claims.items()]
    status: Json = {"phase": phase}
    if generated:
        status["resourceClaimStatuses"] = entries
        entries = [{"name": n, "resourceClaimTemplateName": "t"} for n in claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, labels=labels, annotations=notes),
        "spec": {
            "containers": [{"name": "main"}],
            "resourceClaims": entries,
            **({"nodeName": node} if node else {}),
        },
        "status": status,
    }


class ClassicWorld:
    """A view, and records of what was said of gangs."""

    def __init__(self, *objects: Json, version: str = V1ALPHA3) -> None:
        self.view = ClassicView(version, (CONTROLLER,))
        self.records = PodGangRecords()
        self.answered: dict[str, tuple[str, ...]] = {}
        self.overdue: frozenset[str] = frozenset()
        self._sequences = count(1)
        self.put(*objects)

    def put(self, *objects: Json) -> list[Change]:
        """Take objects in; gives what the bus is told."""
        told: list[Change] = []
        for raw in objects:
            change = Change(raw["kind"], key_of(raw), raw)
            self.view.take(change)
            told += self.view.to_v1(change)
        return told

    def remove(self, raw: Json) -> list[Change]:
        """Take in that an object is gone."""
        change = Change(raw["kind"], key_of(raw), None, raw["metadata"]["uid"])
        self.view.take(change)
        return list(self.view.to_v1(change))

    def look(self, group: GroupKey) -> Look:
        """Look at a gang."""
        return look_at(
            self.view,
            group,
            self.records.of_group(group),
            cluster=CLUSTER,
            now=NOW,
            answered=self.answered,
            overdue=self.overdue,
        )

    def plan(self, group: GroupKey) -> ClassicSteps:
        """Plan what comes next for a gang."""
        return plan_gang(self.look(group))

    def say(self, *messages: LifecycleMessage) -> None:
        """Have messages on the bus."""
        for message in messages:
            self.records.apply(message, next(self._sequences))

    def submit(self, group: GroupKey) -> SubmitGang:
        """Carry out that a gang is submitted."""
        (message,) = self.plan(group).messages
        assert isinstance(message, SubmitGang)
        self.say(message)
        return message

    def decide(self, message: SubmitGang, *nodes: str) -> GangAllocated:
        """Put the pods of a gang on nodes, in the order of its members."""
        places = [
            (member, index)
            for member in message.gang.spec.members
            for index in range(member.count)
        ]
        members = tuple(
            MemberAllocated(
                member=member.name,
                index=index,
                node=node,  # type: ignore[arg-type]
                claims=tuple(
                    ClaimAllocated(
                        claim=claim.name,
                        ref=gang_allocated().members[0].claims[0].ref,
                        allocation=allocation(result(f"{node}-{number}")),
                    )
                    for number, claim in enumerate(member.claims)
                ),
            )
            for (member, index), node in zip(places, nodes, strict=True)
        )
        decision = gang_allocated(*members, uid=message.uid)
        self.say(decision)
        return decision

    def leave_pending(self, message: SubmitGang, *reasons: Any) -> GangPending:
        """Say why a gang has no place."""
        pending = gang_pending(message.uid, reasons=reasons)
        self.say(pending)
        return pending


def key_of(raw: Json) -> str:
    """Give an object's key."""
    meta = raw["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


def lone(name: str) -> GroupKey:
    """Name the gang of a lone pod."""
    return GroupKey(NAMESPACE, name, lone=True)


def nodes_of(affinity: Mapping[str, Any]) -> list[str]:
    """List the nodes that an affinity names."""
    required = affinity[NODE_AFFINITY][REQUIRED]
    fields: Iterable[Json] = (
        field for term in required["nodeSelectorTerms"] for field in term["matchFields"]
    )
    return sorted(value for field in fields for value in field["values"])
