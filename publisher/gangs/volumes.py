"""Volumes: the claims of pods, the volumes that these are bound to, and the classes.

Says which pods a change concerns, because it may end their wait or make a submission
void. Knows no plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.pods.volumes import list_volume_claims
from contracts.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from contracts.workload import Pod


class Volumes:
    """PersistentVolumeClaims, PersistentVolumes and StorageClasses, and who uses them.

    An object that was not read is not there. Pods are known by `namespace/name`.
    """

    def __init__(self) -> None:
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._free: dict[str, dict[str, PersistentVolume]] = {}
        """By class and name: volumes that no claim is bound to."""
        self._users: dict[str, set[str]] = {}
        """Claim key -> keys of the pods that use it."""

    # --- what is there --------------------------------------------------------------

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """Return a claim by `namespace/name`."""
        return self._claims.get(key)

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume."""
        return self._volumes.get(name)

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a class."""
        return self._classes.get(name)

    def free_volumes(self, storage_class: str) -> Iterable[PersistentVolume]:
        """Go through the volumes of a class that no claim is bound to, by name."""
        free = self._free.get(storage_class, {})
        return (free[name] for name in sorted(free))

    def users(self, claim: str) -> frozenset[str]:
        """Name the pods that use a claim."""
        return frozenset(self._users.get(claim, ()))

    # --- changes --------------------------------------------------------------------

    def note_pod(self, key: str, pod: Pod) -> None:
        """Take in that a pod uses its volumes."""
        for claim in volume_claims_of_pod(pod):
            self._users.setdefault(claim, set()).add(key)

    def forget_pod(self, key: str, pod: Pod) -> None:
        """Take in that a pod, as it was noted, is gone."""
        for claim in volume_claims_of_pod(pod):
            users = self._users[claim]
            users.discard(key)
            if not users:
                del self._users[claim]

    def apply(self, kind: str, key: str, value: object) -> frozenset[str]:
        """Take in what is there under a key (None: nothing); returns whom it concerns.

        Other kinds concern nobody.
        """
        match kind:
            case "PersistentVolumeClaim" if value is None or isinstance(
                value, PersistentVolumeClaim
            ):
                return self.apply_claim(key, value)
            case "PersistentVolume" if value is None or isinstance(
                value, PersistentVolume
            ):
                return self.apply_volume(key, value)
            case "StorageClass" if value is None or isinstance(value, StorageClass):
                return self.apply_class(key, value)
            case _:
                return frozenset()

    def apply_claim(
        self, key: str, claim: PersistentVolumeClaim | None
    ) -> frozenset[str]:
        """Take a claim in (None: it is gone); returns the pods concerned."""
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim
        return self.users(key)

    def apply_volume(
        self, name: str, volume: PersistentVolume | None
    ) -> frozenset[str]:
        """Take a volume in (None: it is gone); returns the pods concerned.

        They are those that have it, and those that wait for one of its class.
        """
        before = self._volumes.pop(name, None)
        if before is not None:
            self._free.get(before.spec.storage_class_name, {}).pop(name, None)
        if volume is not None:
            self._volumes[name] = volume
            if _is_free(volume):
                of_class = self._free.setdefault(volume.spec.storage_class_name, {})
                of_class[name] = volume
        concerned = set[str]()
        for either in (before, volume):
            if either is not None:
                concerned |= self._users_of_volume(either)
        return frozenset(concerned)

    def apply_class(
        self, name: str, storage_class: StorageClass | None
    ) -> frozenset[str]:
        """Take a class in (None: it is gone); returns the pods that wait for it."""
        if storage_class is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = storage_class
        return frozenset(self._users_of_class(name))

    def _users_of_volume(self, volume: PersistentVolume) -> set[str]:
        bound = volume.spec.claim_ref
        if bound is not None:
            return set(self.users(f"{bound.namespace}/{bound.name}"))
        return set(self._users_of_class(volume.spec.storage_class_name))

    def _users_of_class(self, name: str) -> Iterator[str]:
        """Go through the pods with a claim of a class that has no volume yet."""
        for key, users in self._users.items():
            claim = self._claims.get(key)
            if claim is None or claim.spec.volume_name:
                continue
            if claim.spec.storage_class_name == name:
                yield from users


def volume_claims_of_pod(pod: Pod) -> list[str]:
    """Return the keys in the View of a pod's PersistentVolumeClaims."""
    namespace = pod.metadata.namespace
    names = list_volume_claims(pod.metadata, pod.spec)
    return [f"{namespace}/{name}" for name in names]


def _is_free(volume: PersistentVolume) -> bool:
    """True if a claim may still be bound to a volume."""
    return volume.status.phase in ("", "Available", "Pending")
