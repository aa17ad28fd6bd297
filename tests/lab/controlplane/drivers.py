"""The books that drivers keep on nodes: which device is prepared for which claim.

kubelet starts a pod's containers when its claims are reserved for it and prepared. A
driver that looks is the last to notice that a device is given out twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.lab.controlplane.client import Json

Device = tuple[str, str, str, str]
"""Driver, pool, device and share."""


class Drivers:
    """What is prepared on some nodes."""

    def __init__(self) -> None:
        self.conflicts: set[str] = set()
        """What was refused, as another claim's pods had the device."""
        self._holders: dict[Device, tuple[str, set[str]]] = {}
        """The claim's uid and the uids of the pods that use it."""

    def prepare(self, pod: Json, claims: Sequence[Json]) -> bool:
        """Prepare a pod's claims, all or none; False: the pod must wait."""
        uid = pod["metadata"]["uid"]
        claim_by_device: dict[Device, str] = {}
        for claim in claims:
            status = claim.get("status", {})
            users = status.get("reservedFor", ())
            group = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
            if not any(
                user["uid"] == uid
                or (user["resource"] == "podgroups" and user["name"] == group)
                for user in users
            ):
                return False
            claim_by_device |= dict.fromkeys(_devices(claim), claim["metadata"]["uid"])
        for device, claim_uid in claim_by_device.items():
            holder, users = self._holders.get(device, (claim_uid, set()))
            if holder != claim_uid:
                name = "/".join(part for part in device if part)
                told = f"{name}: prepared for claim {holder} of pods {sorted(users)}"
                self.conflicts.add(f"{told}, wanted by {claim_uid} of pod {uid}")
                return False
        for device, claim_uid in claim_by_device.items():
            self._holders.setdefault(device, (claim_uid, set()))[1].add(uid)
        return True

    def unprepare(self, pod: Json) -> None:
        """Give back what a pod has, once its containers have ended."""
        uid = pod["metadata"]["uid"]
        for device, (_, users) in list(self._holders.items()):
            users.discard(uid)
            if not users:
                del self._holders[device]


def _devices(claim: Json) -> list[Device]:
    """Name the devices that nobody else may have; admins share theirs."""
    results = claim["status"]["allocation"]["devices"].get("results", ())
    return [
        (result["driver"], result["pool"], result["device"], result.get("shareID", ""))
        for result in results
        if not result.get("adminAccess")
    ]
