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
from contracts.messages import ConfirmationMessage
from contracts.names import GANG
from publisher.gangs.members import placed
from publisher.gangs.view import GroupKey

_FORGOTTEN = 10_000
"""So many uids of forgotten gangs are remembered: a message may come late."""


class Submission(GangRecord, frozen=True, kw_only=True, dict=True):
    """A gang on the bus, and the pods that it is about."""

    @property
    def group(self) -> GroupKey | None:
        """The pods that it is about; None: its submission was not read yet."""
        if self.submission is None:
            return None
        meta = self.submission.gang.metadata
        if GANG not in meta.labels:
            for places in self.submission.places.values():
                return GroupKey(meta.namespace, places[0].pods[0].name, lone=True)
        return GroupKey(meta.namespace, meta.name)

    @cached_property
    def pods(self) -> frozenset[str]:
        """The uids of its pods; none: they were not there when it was submitted."""
        return (
            frozenset() if self.submission is None else placed(self.submission.places)
        )

    @property
    def age(self) -> tuple[int, str]:
        """Orders submissions of the same pods: the greatest is the newest."""
        meta = None if self.submission is None else self.submission.gang.metadata
        return (0 if meta is None else meta.generation, self.uid)


class Submissions:
    """All of them, by uid and by the pods that they are about."""

    def __init__(self) -> None:
        self._all: dict[GangUID, Submission] = {}
        self._of_group: dict[GroupKey, set[GangUID]] = {}
        self._forgotten: OrderedDict[GangUID, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._all)

    def of_group(self, group: GroupKey) -> tuple[Submission, ...]:
        """Give the submissions of a group, in a fixed order."""
        return tuple(self._all[uid] for uid in sorted(self._of_group.get(group, ())))

    def get(self, uid: GangUID) -> Submission | None:
        """Give one by uid."""
        return self._all.get(uid)

    def forgotten(self, uid: GangUID) -> bool | None:
        """Say of one that was forgotten whether its pods are asked for again.

        None: it was not. Somebody may learn of pods only when all is over.
        """
        return self._forgotten.get(uid)

    def groups(self) -> Iterator[GroupKey]:
        """Go through the groups that have submissions."""
        return iter(self._of_group)

    def apply(self, message: LifecycleMessage, sequence: int) -> GroupKey | None:
        """Take a message in; returns the group concerned, if it is known.

        `sequence` is its place in its stream; our own are taken in before they are
        read.
        """
        uid = message.uid
        if uid in self._forgotten:
            return None
        known = self._all.get(uid) or Submission.of(message)
        after = self._all[uid] = known.apply(message, sequence)
        group = after.group
        if group is not None:
            self._of_group.setdefault(group, set()).add(uid)
        return group

    def correct(
        self, uid: GangUID, confirmation: ConfirmationMessage | None, sequence: int
    ) -> None:
        """Believe that this is what was last confirmed, whatever was known."""
        known = self._all.get(uid)
        if known is not None:
            self._all[uid] = known.with_confirmation(confirmation, sequence)

    def forget(self, uids: Iterable[GangUID]) -> None:
        """Drop submissions of which nothing is left."""
        for uid in uids:
            known = self._all.pop(uid, None)
            group = None if known is None else known.group
            if group is not None:
                members = self._of_group[group]
                members.discard(uid)
                if not members:
                    del self._of_group[group]
            self._forgotten[uid] = known is not None and known.is_ended_by_publisher
            if len(self._forgotten) > _FORGOTTEN:
                self._forgotten.popitem(last=False)
