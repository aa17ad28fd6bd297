"""Gangs that were submitted, by the pods that they are about.

`contracts.lifecycle` folds the messages about a gang. A gang that is over is forgotten
once its pods are gone. Knows no Kubernetes object.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from contracts.errors import DecodeError
from contracts.gang import MAX_MEMBERS, Gang, Member
from contracts.ids import GangKey, NodeName
from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import (
    CancelGang,
    ConfirmationMessage,
    GangAllocated,
    GangPending,
    MemberAllocated,
    Place,
    PodRef,
    SubmitGang,
)
from contracts.names import GANG, WORKLOAD
from publisher.gangs.view import GroupKey

_FORGOTTEN = 10_000
"""So many uids of forgotten gangs are remembered: a message may come late."""


class PodGangRecord(GangRecord, frozen=True, kw_only=True, dict=True):
    """A gang on the bus, and the pods that it is about."""

    @property
    def group(self) -> GroupKey | None:
        """The pods that it is about; None: its submission was not read yet."""
        if self.submission is None:
            return None
        meta = self.submission.gang.metadata
        api, _, name = meta.annotations.get(WORKLOAD, "").partition("/")
        if api:
            return GroupKey(meta.namespace, name, api=api)
        if GANG not in meta.labels:
            for pod in _pods_of(self.submission):
                return GroupKey(meta.namespace, pod.name, lone=True)
        return GroupKey(meta.namespace, meta.name)

    @cached_property
    def pods(self) -> frozenset[str]:
        """The uids of its pods; none: they were not there when it was submitted."""
        if self.submission is None:
            return frozenset()
        return uids_of_places(self.submission.places)

    @property
    def owner_uid(self) -> str:
        """The uid of the Gang object that it lives with; empty: none."""
        message = self.submission
        owners = () if message is None else message.gang.metadata.owner_references
        return next((owner.uid for owner in owners if owner.kind == "Gang"), "")

    def holds_for(self, gang: Gang) -> bool:
        """True if the devices of a Gang object are decided."""
        return self.in_force is not None and self.owner_uid == gang.metadata.uid

    @property
    def restores(self) -> int:
        """How many pods its gang has again with these; 0: they replace none."""
        return 0 if self.submission is None else self.submission.restores

    def node_of_place(self, place: str) -> NodeName | None:
        """Return where `member/index` was decided to be; None: nowhere."""
        return self._nodes_by_place.get(place)

    @cached_property
    def _nodes_by_place(self) -> dict[str, NodeName]:
        decided = () if self.placed is None else self.placed.members
        return {name_place(member): member.node for member in decided}

    def member_of_place(self, place: str) -> Member | None:
        """Return the member that `member/index` is one of; None: there is none."""
        members = () if self.submission is None else self.submission.gang.spec.members
        name = place.rpartition("/")[0]
        return next((member for member in members if member.name == name), None)

    @property
    def is_recreating(self) -> bool:
        """True if a publisher began to delete its pods, so that others are made."""
        command = self.ended_by
        return (
            isinstance(command, CancelGang)
            and command.recreate
            and self.is_ended_by_publisher
        )

    @property
    def age(self) -> tuple[int, str]:
        """Sort key for gangs of the same pods: the greatest is the newest."""
        meta = None if self.submission is None else self.submission.gang.metadata
        return (0 if meta is None else meta.generation, self.uid)


def _pods_of(submission: SubmitGang) -> Iterator[PodRef]:
    for places in submission.places.values():
        for place in places:
            yield from place.pods


def _check_places(submission: SubmitGang) -> None:
    """Raise a DecodeError unless each place has pods of its own."""
    uids: set[str] = set()
    for member, places in submission.places.items():
        for index, place in enumerate(places):
            found = {pod.uid for pod in place.pods}
            field = f"places[{member}][{index}].pods"
            if not found:
                raise DecodeError("submission", field, "must not be empty")
            if len(found) < len(place.pods) or not uids.isdisjoint(found):
                raise DecodeError("submission", field, "a pod has a place already")
            uids |= found
            if len(uids) > MAX_MEMBERS:
                reason = f"more than {MAX_MEMBERS} pods"
                raise DecodeError("submission", "places", reason)


def name_place(member: MemberAllocated) -> str:
    """Name the place of a decided pod as its annotation does: `member/index`."""
    return f"{member.member}/{member.index}"


def uids_of_places(places: Mapping[str, Sequence[Place]]) -> frozenset[str]:
    """Return the uids of all pods that have a place."""
    return frozenset(
        pod.uid
        for of_member in places.values()
        for place in of_member
        for pod in place.pods
    )


class _ForgottenGang:
    """What the records keep of a gang that was removed: its last sequences."""

    __slots__ = ("_decision_sequence", "_submission_sequence", "is_asked_again")

    def __init__(self, record: PodGangRecord | None) -> None:
        self.is_asked_again = record is not None and record.is_ended_by_publisher
        """True if its pods are wanted, and only the gang was given up."""
        self._submission_sequence = 0 if record is None else record.submission_sequence
        self._decision_sequence = 0 if record is None else record.decision_sequence

    def lives_again(self, message: LifecycleMessage, sequence: int) -> bool:
        """True if a message begins another life of a gang, after this one was removed.

        A gang that is over is not decided again, and is submitted once.
        """
        if isinstance(message, SubmitGang):
            return 0 < self._submission_sequence < sequence
        is_decided = isinstance(message, GangAllocated | GangPending)
        return is_decided and 0 < self._decision_sequence < sequence


class PodGangRecords:
    """All gangs, by key and by group."""

    def __init__(self) -> None:
        self._records: dict[GangKey, PodGangRecord] = {}
        self._keys_by_group: dict[GroupKey, set[GangKey]] = {}
        self._forgotten: OrderedDict[GangKey, _ForgottenGang] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: GangKey) -> PodGangRecord | None:
        """Return what is known of a gang; None: nothing."""
        return self._records.get(key)

    def is_known(self, key: GangKey) -> bool:
        """True if anything is known of a gang."""
        return key in self._records

    def of_group(self, group: GroupKey) -> tuple[PodGangRecord, ...]:
        """Return the gangs of a group, in a fixed order."""
        keys = sorted(self._keys_by_group.get(group, ()))
        return tuple(self._records[key] for key in keys)

    def forgotten(self, key: GangKey) -> bool | None:
        """True if the pods of a forgotten gang are asked for again; None: it is kept.

        Its pods may become known to us only when the gang is over.
        """
        forgotten = self._forgotten.get(key)
        return None if forgotten is None else forgotten.is_asked_again

    def groups(self) -> Iterator[GroupKey]:
        """Go through the groups for which something was submitted."""
        return iter(self._keys_by_group)

    def finished_groups(self) -> Iterator[GroupKey]:
        """Go through those with a gang for which nothing is held any longer."""
        for group, keys in self._keys_by_group.items():
            if any(self._records[key].is_finished for key in keys):
                yield group

    def apply(
        self, message: LifecycleMessage, sequence: int, time_s: float = 0.0
    ) -> GroupKey | None:
        """Take a message in; returns the group concerned, if it is known.

        `sequence` is its place in its stream, `time_s` when it was stored there. What
        we say ourselves is taken in at once, and once more when it is read.

        Raises:
            DecodeError: a submission has places that are not for pods of their own.
        """
        key = message.key
        forgotten = self._forgotten.get(key)
        if forgotten is not None:
            if not forgotten.lives_again(message, sequence):
                return None
            del self._forgotten[key]
        if isinstance(message, SubmitGang):
            _check_places(message)
        record = self._records.get(key) or PodGangRecord.of(message)
        record = self._records[key] = record.apply(message, sequence, time_s)
        group = record.group
        if group is not None:
            self._keys_by_group.setdefault(group, set()).add(key)
        return group

    def correct(
        self, key: GangKey, confirmation: ConfirmationMessage | None, sequence: int
    ) -> None:
        """Let this be what was confirmed last, whatever was known before."""
        record = self._records.get(key)
        if record is not None:
            self._records[key] = record.with_confirmation(confirmation, sequence)

    def forget(self, keys: Iterable[GangKey]) -> None:
        """Drop gangs of which nothing is left."""
        for key in keys:
            record = self._records.pop(key, None)
            group = None if record is None else record.group
            if group is not None:
                others = self._keys_by_group[group]
                others.discard(key)
                if not others:
                    del self._keys_by_group[group]
            self._forgotten[key] = _ForgottenGang(record)
            if len(self._forgotten) > _FORGOTTEN:
                self._forgotten.popitem(last=False)
