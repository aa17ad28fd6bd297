"""Which pods that are on no node yet use one all the same: those that we decided.

A pod whose gate we opened is pinned to its node and will run there. Its annotations say
so, and anybody may write them: so it counts only where a submission asked for it, and
what was decided put its place on just that node. Where the gang came before its pods
nothing names them: then one pod counts for a place, and asks for no more than the
member does. Knows no bus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from contracts.ids import GangKey, GangUID, Namespace
from contracts.kubernetes.decode import decode_object
from contracts.names import GANG_UID, INDEX
from contracts.pods.node_resources import count_requested, sum_requests
from contracts.workload import Pod
from publisher.gangs.records import PodGangRecord

FindGang = Callable[[GangKey], PodGangRecord | None]
_Place = tuple[GangKey, str]


class OpenedPods:
    """Which pod has which place of the gangs that came before their pods."""

    def __init__(self, find: FindGang) -> None:
        """`find` returns the record of a gang."""
        self._find = find
        self._uid_by_place: dict[_Place, str] = {}
        self._place_by_uid: dict[str, _Place] = {}
        self._freed = 0
        """How often a place was freed, which another pod may take."""

    def evidence_on(self, raw: Mapping[str, Any] | None) -> object:
        """Return what `is_decided` depends on: its answer holds until this changes.

        Records are values: a changed gang has another record.
        """
        key, _ = _place_of(raw or {})
        return self._find(key), self._freed

    def is_decided(self, raw: Mapping[str, Any], node: str) -> bool:
        """True if it was decided that a pod which is on no node yet goes to this one.

        Raises:
            ContractsError: the pod cannot be read.
        """
        key, index = _place_of(raw)
        record = self._find(key)
        if record is None or record.node_of_place(index) != node:
            return False
        uid = raw["metadata"]["uid"]
        if record.pods:
            return uid in record.pods
        return self._takes_place(uid, (key, index)) and _is_no_more(raw, record)

    def forget(self, uid: str) -> None:
        """Free the place of a pod that is on its node, or gone."""
        place = self._place_by_uid.pop(uid, None)
        if place is not None:
            del self._uid_by_place[place]
            self._freed += 1

    def _takes_place(self, uid: str, place: _Place) -> bool:
        """True if a place is this pod's: the first that comes has it."""
        if self._place_by_uid.get(uid, place) != place:
            self.forget(uid)
        if self._uid_by_place.setdefault(place, uid) != uid:
            return False
        self._place_by_uid[uid] = place
        return True


def _place_of(raw: Mapping[str, Any]) -> _Place:
    """Read which place of which gang a pod claims."""
    meta = raw.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    key = GangKey(
        Namespace(meta.get("namespace", "")), GangUID(annotations.get(GANG_UID, ""))
    )
    return key, annotations.get(INDEX, "")


def _is_no_more(raw: Mapping[str, Any], record: PodGangRecord) -> bool:
    """True if a pod asks its node for no more than what was decided for its place."""
    pod = decode_object(raw).value
    member = record.member_of_place(pod.metadata.annotations[INDEX])
    if not isinstance(pod, Pod) or member is None:
        return False
    allowed = count_requested(member.node.resources)
    asked = count_requested(sum_requests(pod.spec))
    return all(amount <= allowed.get(name, 0) for name, amount in asked.items())
