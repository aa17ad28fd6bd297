"""Gangs that were submitted, by the pods that they are about.

What was said of a gang is folded by `contracts.lifecycle`. A gang that is over is
forgotten once its pods are gone. Knows no Kubernetes object.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cached_property

from contracts.ids import GangUID
from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import CancelGang, ConfirmationMessage
from contracts.names import GANG, WORKLOAD
from publisher.gangs.members import uids_of_places
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
            for places in self.submission.places.values():
                return GroupKey(meta.namespace, places[0].pods[0].name, lone=True)
        return GroupKey(meta.namespace, meta.name)

    @cached_property
    def pods(self) -> frozenset[str]:
        """The uids of its pods; none: they were not there when it was submitted."""
        if self.submission is None:
            return frozenset()
        return uids_of_places(self.submission.places)

    @property
    def is_recreating(self) -> bool:
        """Whether a publisher began to delete its pods, so that others are made."""
        command = self.command
        return (
            isinstance(command, CancelGang)
            and command.recreate
            and self.is_ended_by_publisher
        )

    @property
    def age(self) -> tuple[int, str]:
        """Orders gangs of the same pods: the greatest is the newest."""
        meta = None if self.submission is None else self.submission.gang.metadata
        return (0 if meta is None else meta.generation, self.uid)


class PodGangRecords:
    """All of them, by uid and by the pods that they are about."""

    def __init__(self) -> None:
        self._records: dict[GangUID, PodGangRecord] = {}
        self._uids_by_group: dict[GroupKey, set[GangUID]] = {}
        self._forgotten: OrderedDict[GangUID, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def of_group(self, group: GroupKey) -> tuple[PodGangRecord, ...]:
        """Return the gangs of a group, in a fixed order."""
        uids = sorted(self._uids_by_group.get(group, ()))
        return tuple(self._records[uid] for uid in uids)

    def forgotten(self, uid: GangUID) -> bool | None:
        """Return of a forgotten gang whether its pods are asked for again.

        None: it was not forgotten. Somebody may learn of pods only when all is over.
        """
        return self._forgotten.get(uid)

    def groups(self) -> Iterator[GroupKey]:
        """Go through the groups for which something was submitted."""
        return iter(self._uids_by_group)

    def apply(self, message: LifecycleMessage, sequence: int) -> GroupKey | None:
        """Take a message in; returns the group concerned, if it is known.

        `sequence` is its place in its stream. What we say ourselves is taken in at
        once, and once more when it is read.
        """
        uid = message.uid
        if uid in self._forgotten:
            return None
        record = self._records.get(uid) or PodGangRecord.of(message)
        record = self._records[uid] = record.apply(message, sequence)
        group = record.group
        if group is not None:
            self._uids_by_group.setdefault(group, set()).add(uid)
        return group

    def correct(
        self, uid: GangUID, confirmation: ConfirmationMessage | None, sequence: int
    ) -> None:
        """Let this be what was confirmed last, whatever was known before."""
        record = self._records.get(uid)
        if record is not None:
            self._records[uid] = record.with_confirmation(confirmation, sequence)

    def forget(self, uids: Iterable[GangUID]) -> None:
        """Drop gangs of which nothing is left."""
        for uid in uids:
            record = self._records.pop(uid, None)
            group = None if record is None else record.group
            if group is not None:
                others = self._uids_by_group[group]
                others.discard(uid)
                if not others:
                    del self._uids_by_group[group]
            self._forgotten[uid] = record is not None and record.is_ended_by_publisher
            if len(self._forgotten) > _FORGOTTEN:
                self._forgotten.popitem(last=False)
