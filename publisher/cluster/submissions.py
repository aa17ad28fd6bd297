"""Gangs that were submitted, and what was last said of each on the bus.

Streams are read each on its own, so messages come in any order; the last of each kind
counts. A gang that is over is forgotten once its pods are gone. Knows no Kubernetes
object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from contracts.ids import GangUID
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    CommandMessage,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangRejected,
    GangReleased,
    GatesOpened,
    SubmitGang,
)
from publisher.cluster.members import placed
from publisher.cluster.view import GroupKey
from publisher.names import GANG


class Submission(Struct, frozen=True, kw_only=True):
    """A gang on the bus."""

    uid: GangUID
    message: SubmitGang | None = None
    decision: DecisionMessage | None = None
    confirmation: ConfirmationMessage | None = None
    command: CommandMessage | None = None

    @property
    def group(self) -> GroupKey | None:
        """The pods that it is about; None: its submission was not read yet."""
        if self.message is None:
            return None
        meta = self.message.gang.metadata
        lone = bool(self.message.places) and GANG not in meta.labels
        return GroupKey(meta.namespace, meta.name, lone=lone)

    @property
    def pods(self) -> frozenset[str]:
        """The uids of its pods; none: they were not there when it was submitted."""
        return frozenset() if self.message is None else placed(self.message.places)

    @property
    def allocated(self) -> GangAllocated | None:
        """The decision that should be carried out, or was."""
        decision = self.decision
        if not isinstance(decision, GangAllocated) or self.command is not None:
            return None
        void = isinstance(self.confirmation, AllocationRefused | AllocationLost)
        return None if void and self._confirms(decision) else decision

    @property
    def is_written(self) -> bool:
        """Whether we have said that all claims of the decision are written."""
        decision = self.decision
        said = isinstance(self.confirmation, AllocationWritten | GatesOpened)
        return said and isinstance(decision, GangAllocated) and self._confirms(decision)

    @property
    def is_open(self) -> bool:
        """Whether we have said that all gates are open."""
        return self.is_written and isinstance(self.confirmation, GatesOpened)

    @property
    def is_over(self) -> bool:
        """Whether the solver will decide nothing more for it."""
        return isinstance(self.decision, GangReleased | GangRejected)

    @property
    def is_ending(self) -> bool:
        """Whether it is over, or soon will be."""
        return self.is_over or self.command is not None

    @property
    def is_cancelled_by_others(self) -> bool:
        """Whether somebody else than this publisher gave it up."""
        command = self.command
        return isinstance(command, CancelGang) and not command.reason.startswith(OURS)

    def _confirms(self, decision: GangAllocated) -> bool:
        said = self.confirmation
        if said is None or isinstance(said, ClaimsReleased):
            return False
        return said.attempt == decision.attempt


OURS = "publisher: "
"""Begins the reason of a cancellation that the publisher itself asked for."""


class Submissions:
    """All of them, by uid and by the pods that they are about."""

    def __init__(self) -> None:
        self._all: dict[GangUID, Submission] = {}
        self._of_group: dict[GroupKey, set[GangUID]] = {}

    def of_group(self, group: GroupKey) -> tuple[Submission, ...]:
        """Give the submissions of a group, in a fixed order."""
        return tuple(self._all[uid] for uid in sorted(self._of_group.get(group, ())))

    def get(self, uid: GangUID) -> Submission | None:
        """Give one by uid."""
        return self._all.get(uid)

    def groups(self) -> Iterator[GroupKey]:
        """Go through the groups that have submissions."""
        return iter(self._of_group)

    def apply(
        self,
        message: SubmitGang | DecisionMessage | ConfirmationMessage | CommandMessage,
    ) -> GroupKey | None:
        """Take a message in; gives the group concerned, if it is known."""
        known = self._all.get(message.uid) or Submission(uid=message.uid)
        if isinstance(message, SubmitGang):
            after = replace(known, message=message)
        elif isinstance(message, DecisionMessage):
            after = replace(known, decision=message)
        elif isinstance(message, CommandMessage):
            after = replace(known, command=message)
        else:
            after = replace(known, confirmation=message)
        self._all[message.uid] = after
        group = after.group
        if group is not None:
            self._of_group.setdefault(group, set()).add(message.uid)
        return group

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
