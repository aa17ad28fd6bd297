"""Pods that wait at our scheduling gate, and what else is in their way without us.

When Moorings goes, nobody opens the gates, and what keeps kube-scheduler off devices
that Moorings owned stays. Reads objects as the API server serves them, as far as it
must; knows no connection.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from contracts.counts import counted
from contracts.names import GANG, GATE, OWNED
from publisher.kube.holder import name_holder

Json = Mapping[str, Any]
_POLICY = "moorings-gate-"
"""Begins the names of the policies of k8s/base that give pods the gate."""


class WaitingPod(Struct, frozen=True, kw_only=True):
    """A pod at our gate."""

    namespace: str
    name: str
    uid: str
    version: str
    gang: str
    """Of its label; empty: it has none."""
    owner: str
    """Name of its controller; empty: none would recreate it."""
    other_gates: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def opening(self) -> dict[str, Any]:
        """The merge patch that takes our gate away, and no other."""
        return {
            "spec": {"schedulingGates": [{"name": name} for name in self.other_gates]}
        }


class Obstacle(Struct, frozen=True, kw_only=True):
    """An obstacle for pods without Moorings, and its remedy."""

    kind: str
    name: str
    reason: str
    remedy: str


def list_waiting(
    pods: Iterable[Json], namespace: str, names: Collection[str]
) -> list[WaitingPod]:
    """List the pods at our gate, of a namespace (empty: all) and names (none: all).

    A name is that of a gang, a controller or a pod, or `namespace/name`.
    """
    waiting = []
    for raw in pods:
        pod = read_waiting(raw)
        if pod is None or namespace not in ("", pod.namespace):
            continue
        own = {pod.gang, pod.owner, pod.name} - {""}
        known = own | {f"{pod.namespace}/{name}" for name in own}
        if not names or not known.isdisjoint(names):
            waiting.append(pod)
    return sorted(waiting, key=lambda pod: (pod.namespace, pod.name))


def read_waiting(raw: Json) -> WaitingPod | None:
    """Read a pod; None: our gate does not hold it."""
    meta = raw["metadata"]
    gates = [gate["name"] for gate in raw["spec"].get("schedulingGates") or ()]
    if GATE not in gates:
        return None
    owners = meta.get("ownerReferences") or ()
    return WaitingPod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        gang=(meta.get("labels") or {}).get(GANG, ""),
        owner=next((o["name"] for o in owners if o.get("controller")), ""),
        other_gates=tuple(name for name in gates if name != GATE),
    )


def list_obstacles(
    *, rules: Iterable[Json], slices: Iterable[Json], policies: Iterable[Json]
) -> Iterator[Obstacle]:
    """List what stays in the way: taints on devices, and what gates new pods."""
    for rule in rules:
        if (rule["spec"].get("taint") or {}).get("key") == OWNED:
            name = rule["metadata"]["name"]
            yield Obstacle(
                kind="DeviceTaintRule",
                name=name,
                reason="taints devices, so that kube-scheduler does not use them",
                remedy=f"kubectl delete devicetaintrule {name}",
            )
    tainted: dict[str, int] = {}
    for item in slices:
        if any(map(_is_owned, item["spec"].get("devices") or ())):
            driver = item["spec"]["driver"]
            tainted[driver] = tainted.get(driver, 0) + 1
    for driver, count in sorted(tainted.items()):
        yield Obstacle(
            kind="ResourceSlice",
            name=driver,
            reason=f"{counted(count, 'slice taints', 'slices taint')} devices, as "
            "published by Moorings",
            remedy="start the publisher once without PUBLISHER_OWNED_*, or "
            f"kubectl delete resourceslices --field-selector spec.driver={driver}",
        )
    for policy in policies:
        kind, name = policy["kind"], policy["metadata"]["name"]
        if name.startswith(_POLICY):
            yield Obstacle(
                kind=kind,
                name=name,
                reason="adds the gate to new pods, or refuses pods without it",
                remedy=f"kubectl delete {kind.lower()},{kind.lower()}binding {name}",
            )


def find_leader(leases: Iterable[Json], now: datetime) -> tuple[str, str]:
    """Return the leader by the publishers' Leases (empty: none), and since when none.

    A Lease that was not renewed for three times its duration is nobody's: by our clock,
    which may be another than its holder's.
    """
    last = ""
    for lease in leases:
        spec = lease.get("spec") or {}
        holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
        try:
            age_s = (now - datetime.fromisoformat(renewed)).total_seconds()
        except (TypeError, ValueError):
            continue
        if holder and age_s < 3 * (spec.get("leaseDurationSeconds") or 0):
            return name_holder(str(holder)), ""
        last = max(last, str(renewed))
    return "", last


def _is_owned(device: Json) -> bool:
    fields = device.get("basic") or device
    return any(taint.get("key") == OWNED for taint in fields.get("taints") or ())
