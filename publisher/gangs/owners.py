"""Objects that say how many pods a gang has, and its pods that need no gate.

An index beside the View. A pod without our gate still belongs to a gang if its owner
says so: a launcher, for example, asks for no device. Groups of PodGroups are joined
here. Knows no plan.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from contracts.meta import ObjectMeta
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import COMPOSITE, Membership, OwnerKey, WorkloadAPI
from contracts.workload import Pod, PodSpec
from publisher.gangs.group_trees import GroupTrees

_Gang = tuple[str, WorkloadAPI | None, str]
JoinedMembership = tuple[Membership, Membership | None]
"""What a pod says that it belongs to, and without its PodGroup, if it has one."""


class GangOwners:
    """Owners by key, and pods without our gate by gang."""

    def __init__(self, *, joins_groups: bool = True) -> None:
        """`joins_groups`: CompositePodGroups make their PodGroups one gang."""
        self._owners: dict[OwnerKey, GangOwner] = {}
        self.trees = GroupTrees(self._owners, joins=joins_groups)
        self._ungated: dict[str, tuple[JoinedMembership, Pod]] = {}
        self._ungated_by_gang: dict[_Gang, set[str]] = {}

    def owner_of(self, membership: Membership) -> GangOwner | None:
        """Return the object that says how many pods a gang has, of the same run."""
        if membership.owner is None:
            return None
        owner = self.trees.gang_of(membership.owner)
        uid = membership.run.partition("/")[0]
        return owner if owner is not None and uid in ("", owner.uid) else None

    def join(self, found: JoinedMembership) -> Membership:
        """Return the gang of a pod, by what is known of its PodGroup."""
        by_pod, other = found
        return by_pod if other is None else self.trees.join(by_pod, other)

    def find(self, key: OwnerKey, uid: str) -> GangOwner | None:
        """Return an object that says a gang's size; no uid: whichever has the name."""
        owner = self._owners.get(key)
        return owner if owner is not None and uid in ("", owner.uid) else None

    def ungated(self, membership: Membership) -> tuple[tuple[Membership, Pod], ...]:
        """Return the pods of a gang that never had our gate, with their memberships."""
        gang = _gang_of(membership)
        keys = {
            key
            for each in self._list_gangs(membership)
            for key in self._ungated_by_gang.get(each, ())
        }
        pods = [
            (self.join(found), pod)
            for found, pod in (self._ungated[key] for key in sorted(keys))
        ]
        return tuple((found, pod) for found, pod in pods if _gang_of(found) == gang)

    def _list_gangs(self, membership: Membership) -> Iterator[_Gang]:
        """Go through the gangs under which pods of a gang may be indexed."""
        yield _gang_of(membership)
        owner = membership.owner
        if owner is not None and owner.kind == COMPOSITE:
            for group in self.trees.list_joined(owner):
                yield group.namespace, WorkloadAPI.POD_GROUP, group.name

    def apply_owner(self, key: OwnerKey, owner: GangOwner | None) -> bool:
        """Take an object in (None: it is gone); False: nothing is new."""
        before = self._owners.get(key)
        if before == owner:
            return False
        if owner is None:
            del self._owners[key]
        else:
            self._owners[key] = owner
        self.trees.note(key, before, owner)
        return True

    def apply_ungated(
        self, key: str, pod: Pod | None, membership: JoinedMembership | None
    ) -> Membership | None:
        """Take in a pod without our gate (None: there is none of that key).

        Returns the membership whose gang it concerns.
        """
        before = self._ungated.pop(key, None)
        for gang in () if before is None else _list_indexes(before[0]):
            self._ungated_by_gang[gang].discard(key)
            if not self._ungated_by_gang[gang]:
                del self._ungated_by_gang[gang]
        if pod is None or membership is None:
            return None if before is None else self.join(before[0])
        self._ungated[key] = (membership, _trim_pod(pod))
        for gang in _list_indexes(membership):
            self._ungated_by_gang.setdefault(gang, set()).add(key)
        return self.join(membership)


def _gang_of(membership: Membership) -> _Gang:
    return membership.namespace, membership.api, membership.group


def _list_indexes(found: JoinedMembership) -> set[_Gang]:
    return {_gang_of(each) for each in found if each is not None}


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
