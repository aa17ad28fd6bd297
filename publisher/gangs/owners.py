"""Objects that say how many pods a gang has, and its pods that need no gate.

An index beside the View. A pod without our gate still belongs to a gang if its owner
says so: a launcher, for example, asks for no device. Knows no plan.
"""

from __future__ import annotations

from msgspec.structs import replace

from contracts.meta import ObjectMeta
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import Membership, OwnerKey, WorkloadAPI
from contracts.workload import Pod, PodSpec

_Gang = tuple[str, WorkloadAPI | None, str]


class GangOwners:
    """Owners by key, and pods without our gate by gang."""

    def __init__(self) -> None:
        self._owners: dict[OwnerKey, GangOwner] = {}
        self._ungated: dict[str, tuple[Membership, Pod]] = {}
        self._ungated_by_gang: dict[_Gang, set[str]] = {}

    def owner_of(self, membership: Membership) -> GangOwner | None:
        """Return the object that says how many pods a gang has, of the same run."""
        if membership.owner is None:
            return None
        return self.find(membership.owner, membership.run.partition("/")[0])

    def find(self, key: OwnerKey, uid: str) -> GangOwner | None:
        """Return an object that says a gang's size; no uid: whichever has the name."""
        owner = self._owners.get(key)
        return owner if owner is not None and uid in ("", owner.uid) else None

    def ungated(self, membership: Membership) -> tuple[tuple[Membership, Pod], ...]:
        """Return the pods of a gang that never had our gate, with their memberships."""
        keys = self._ungated_by_gang.get(_gang_of(membership), ())
        return tuple(self._ungated[key] for key in sorted(keys))

    def apply_owner(self, key: OwnerKey, owner: GangOwner | None) -> bool:
        """Take an object in (None: it is gone); False: nothing is new."""
        if self._owners.get(key) == owner:
            return False
        if owner is None:
            del self._owners[key]
        else:
            self._owners[key] = owner
        return True

    def apply_ungated(
        self, key: str, pod: Pod | None, membership: Membership | None
    ) -> Membership | None:
        """Take in a pod without our gate (None: there is none of that key).

        Returns the membership whose gang it concerns.
        """
        before = self._ungated.pop(key, None)
        if before is not None:
            gang = _gang_of(before[0])
            self._ungated_by_gang[gang].discard(key)
            if not self._ungated_by_gang[gang]:
                del self._ungated_by_gang[gang]
        if pod is None or membership is None:
            return None if before is None else before[0]
        self._ungated[key] = (membership, _trim_pod(pod))
        self._ungated_by_gang.setdefault(_gang_of(membership), set()).add(key)
        return membership


def _gang_of(membership: Membership) -> _Gang:
    return membership.namespace, membership.api, membership.group


def _trim_pod(pod: Pod) -> Pod:
    """Keep only what tells whether a pod that is not ours is there."""
    meta = pod.metadata
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        owner_references=meta.owner_references,
    )
    return replace(pod, metadata=kept, spec=PodSpec())
