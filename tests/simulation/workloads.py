"""Who makes pods in the game, and makes them anew: by hand, or owned as in Kubernetes.

A pod made by hand or by a StatefulSet comes back under its name, once the one before is
gone; a Job and a ReplicaSet give each pod a name of its own, and make the next as soon
as one fails or begins to end.
"""

from __future__ import annotations

from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.meta import OwnerReference
from contracts.names import ALLOCATE, IMMEDIATE, RECOVERY
from tests import builders
from tests.builders.pods import waiting_pod
from tests.simulation.setting import Setting, Slot
from tests.simulation.world import THEIRS, Json, World, is_over, uid_of

NS = builders.NAMESPACE
SLOT = "test/slot"
"""The label that says for which slot a pod was made."""
NAMING = ("Job", "ReplicaSet")
"""Owners that give each pod a name of its own."""
VERSIONS = {"Job": "batch/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}


class Workloads:
    """Pods and the claims that are made for them; every method is a move."""

    def __init__(self, world: World, setting: Setting) -> None:
        self._world = world
        self._setting = setting
        self._made = 0
        self._runs: dict[str, int] = {}
        """How often the owners of a gang were made anew."""
        for name in setting.shared:
            self.make_claim(name)

    def count(self) -> int:
        """Number what is made."""
        self._made += 1
        return self._made

    # --- pods -----------------------------------------------------------------------

    def create(self, one: int, _two: int) -> None:
        """Make a pod, unless its owner has it."""
        slots = self._setting.slots
        slot = slots[one % len(slots)]
        number = self.count()
        name = f"{slot.name}-{number}" if slot.owner in NAMING else slot.name
        there = (pod for _, pod in self._world.all("Pod") if _slot_of(pod) == slot.name)
        misses = not any(map(_is_wanted, there))
        if misses and self._world.get("Pod", f"{NS}/{name}") is None:
            self._create(slot, name, f"pod-{number}")

    def _create(self, slot: Slot, name: str, uid: str) -> None:
        recovery = self._setting.recovery
        own = [f"own-{index}" for index in range(slot.own)]
        pod = waiting_pod(
            name,
            gang=slot.gang,
            size=self._setting.size_of(slot.gang) if slot.gang else None,
            templates=[*own, THEIRS] if slot.theirs else own,
            shared={"shared": slot.shared} if slot.shared else {},
            uid=uid,
            annotations={RECOVERY: recovery} if recovery else {},
        )
        labels = pod.metadata.labels | {SLOT: slot.name}
        metadata = replace(
            pod.metadata, labels=labels, owner_references=self._owners(slot)
        )
        raw = to_builtins(replace(pod, metadata=metadata)) | {"apiVersion": "v1"}
        raw["status"] = {"phase": "Pending"}
        self._world.put("Pod", f"{NS}/{name}", raw)

    def _owners(self, slot: Slot) -> tuple[OwnerReference, ...]:
        if not slot.owner:
            return ()
        name = slot.gang or slot.name
        owner = OwnerReference(
            api_version=VERSIONS[slot.owner],
            kind=slot.owner,
            name=name,
            uid=f"{slot.owner}-{name}-{self._runs.get(slot.gang, 0)}",
            controller=True,
        )
        return (owner,)

    def crowd(self, _one: int, _two: int) -> None:
        """Make all pods and their claims."""
        for number in range(len(self._setting.slots)):
            self.create(number, 0)
        self.generate_all()

    def delete(self, one: int, _two: int) -> None:
        """Delete a pod."""
        pods = self._pods()
        if pods:
            self._world.delete_pod(pods[one % len(pods)])

    def terminate(self, one: int, _two: int) -> None:
        """Begin to delete a pod."""
        pods = self._pods()
        if pods:
            self._world.terminate_pod(pods[one % len(pods)])

    def replace(self, one: int, two: int) -> None:
        """Delete some pods, and let whoever made them make them anew, at once."""
        pods = self._pods()
        chosen = {
            pods[(one + n) % len(pods)] for n in range(1 + two // 4 if pods else 0)
        }
        names = {_slot_of(self._world.objects["Pod", key]) for key in chosen}
        for key in sorted(chosen):
            self._world.delete_pod(key)
        for number, slot in enumerate(self._setting.slots):
            if slot.name in names:
                self.create(number, 0)
        self.generate_all()

    def rerun(self, one: int, two: int) -> None:
        """Delete the owners of a gang and make them anew; their pods go at leisure."""
        gangs = sorted({slot.gang for slot in self._setting.slots if slot.owner} - {""})
        if not gangs:
            return
        gang = gangs[one % len(gangs)]
        self._runs[gang] = self._runs.get(gang, 0) + 1
        slots = [s.name for s in self._setting.slots if s.owner and s.gang == gang]
        for key, pod in list(self._world.all("Pod")):
            if _slot_of(pod) in slots:
                end = self._world.terminate_pod if two % 2 else self._world.delete_pod
                end(key)
        for number, slot in enumerate(self._setting.slots):
            if slot.name in slots[: 1 + two]:
                self.create(number, 0)
        self.generate_all()

    def finish(self, one: int, two: int) -> None:
        """Let a bound pod end, or a waiting one fail."""
        pods = [key for key, pod in self._world.all("Pod") if not is_over(pod)]
        if pods:
            key = pods[one % len(pods)]
            bound = self._world.objects["Pod", key]["spec"].get("nodeName")
            phase = "Succeeded" if bound and two % 2 else "Failed"
            self._world.change("Pod", key, {"status": {"phase": phase}})

    def _pods(self) -> list[str]:
        return [key for key, _ in self._world.all("Pod")]

    # --- claims ---------------------------------------------------------------------

    def generate(self, one: int, _two: int) -> None:
        """Make the claims of a pod, as the controller manager does."""
        pods = [
            (key, pod)
            for key, pod in self._world.all("Pod")
            if not is_over(pod) and any(self._is_missing(pod, c) for c in _claims(pod))
        ]
        if not pods:
            return
        key, pod = pods[one % len(pods)]
        made = _generated(pod)
        for claim in _claims(pod):
            if self._is_missing(pod, claim):
                name = f"{pod['metadata']['name']}-{claim['name']}-{self._made}"
                self.make_claim(name, owner=uid_of(pod))
                made[claim["name"]] = name
        statuses = [
            {"name": name, "resourceClaimName": claim} for name, claim in made.items()
        ]
        body = {"status": {"resourceClaimStatuses": statuses}}
        self._world.change("Pod", key, body)

    def generate_all(self) -> None:
        """Make the claims of all pods."""
        for _ in self._setting.slots:
            self.generate(0, 0)

    def _is_missing(self, pod: Json, claim: Json) -> bool:
        """Whether a claim of a pod is to be made, for the first time or again."""
        name = _generated(pod).get(claim["name"])
        made = name and self._world.get("ResourceClaim", f"{NS}/{name}") is not None
        return "resourceClaimTemplateName" in claim and not made

    def make_claim(self, name: str, owner: str = "", held: Json | None = None) -> None:
        """Make a claim, for a pod (uid) or by hand, allocated by somebody or free."""
        claim = to_builtins(builders.claim(name=name, uid=f"claim-{self.count()}"))
        claim |= {"apiVersion": "resource.k8s.io/v1"}
        if name in self._setting.immediate:
            claim["metadata"]["labels"] = {ALLOCATE: IMMEDIATE}
        if owner:
            claim["metadata"]["owner"] = owner
        if held is not None:
            claim["status"] = {"allocation": held}
        self._world.put("ResourceClaim", f"{NS}/{name}", claim)

    def label(self, one: int, two: int) -> None:
        """Let a claim be allocated without a pod from now on, or no more."""
        names = self._setting.shared
        key = f"{NS}/{names[one % len(names)]}" if names else ""
        if names and self._world.get("ResourceClaim", key) is not None:
            labels = {ALLOCATE: IMMEDIATE if two % 2 else None}
            self._world.change("ResourceClaim", key, {"metadata": {"labels": labels}})

    def restore(self, one: int, _two: int) -> None:
        """Make a shared claim anew that somebody deleted."""
        names = self._setting.shared
        if names:
            name = names[one % len(names)]
            if self._world.get("ResourceClaim", f"{NS}/{name}") is None:
                self.make_claim(name)


def _slot_of(pod: Json) -> str:
    return str(pod["metadata"]["labels"][SLOT])


def _is_wanted(pod: Json) -> bool:
    """Whether a pod's owner makes no other in its place: it may run, or has done."""
    is_leaving = "deletionTimestamp" in pod["metadata"]
    return not is_leaving and pod["status"]["phase"] != "Failed"


def _claims(pod: Json) -> list[Json]:
    return list(pod["spec"].get("resourceClaims") or ())


def _generated(pod: Json) -> dict[str, str]:
    statuses = pod["status"].get("resourceClaimStatuses") or ()
    return {status["name"]: status["resourceClaimName"] for status in statuses}
