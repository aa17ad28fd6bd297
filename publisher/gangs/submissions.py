"""Gangs that were submitted, and what was last said of each on the bus.

Streams are read each on its own, so messages come in any order; the last of each
stream counts. A gang that is over is forgotten once its pods are gone. Knows no
Kubernetes object.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cached_property

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
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    SubmitGang,
)
from contracts.names import GANG
from publisher.gangs.members import placed
from publisher.gangs.view import GroupKey

_FORGOTTEN = 10_000
"""So many uids of forgotten gangs are remembered: a message may come late."""
OURS = "publisher: "
"""Begins the reason of a cancellation that the publisher itself asked for."""


class Submission(Struct, frozen=True, kw_only=True, dict=True):
    """A gang on the bus."""

    uid: GangUID
    message: SubmitGang | None = None
    decision: DecisionMessage | None = None
    decided_at: int = 0
    """Sequence of the decision."""
    confirmation: ConfirmationMessage | None = None
    confirmed_at: int = 0
    """Sequence of the confirmation: the next is only taken if nobody else was first."""
    command: CommandMessage | None = None

    @property
    def group(self) -> GroupKey | None:
        """The pods that it is about; None: its submission was not read yet."""
        if self.message is None:
            return None
        meta = self.message.gang.metadata
        if GANG not in meta.labels:
            for places in self.message.places.values():
                return GroupKey(meta.namespace, places[0].pods[0].name, lone=True)
        return GroupKey(meta.namespace, meta.name)

    @cached_property
    def pods(self) -> frozenset[str]:
        """The uids of its pods; none: they were not there when it was submitted."""
        return frozenset() if self.message is None else placed(self.message.places)

    @property
    def age(self) -> tuple[int, str]:
        """Orders submissions of the same pods: the greatest is the newest."""
        meta = None if self.message is None else self.message.gang.metadata
        return (0 if meta is None else meta.generation, self.uid)

    @property
    def allocated(self) -> GangAllocated | None:
        """The decision that should be carried out, or was."""
        decision = self.decision
        if not isinstance(decision, GangAllocated) or self.command is not None:
            return None
        void = isinstance(self.confirmation, AllocationRefused | AllocationLost)
        return None if void and self._confirms(decision) else decision

    @property
    def attempt(self) -> int:
        """The last attempt that was decided; 0: none yet."""
        decision = self.decision
        if isinstance(decision, GangAllocated | GangPending):
            return decision.attempt
        return 0

    @property
    def is_written(self) -> bool:
        """Whether we have said that all claims of the decision are written."""
        decision = self.decision
        return (
            self.was_written
            and isinstance(decision, GangAllocated)
            and self._confirms(decision)
        )

    @property
    def was_written(self) -> bool:
        """Whether the last thing that we said lets gates be opened, of any attempt."""
        return isinstance(self.confirmation, AllocationWritten | GatesOpened)

    @property
    def is_open(self) -> bool:
        """Whether we have said that all gates are open."""
        return isinstance(self.confirmation, GatesOpened)

    @property
    def is_over(self) -> bool:
        """Whether the solver will decide nothing more for it."""
        return isinstance(self.decision, GangReleased | GangRejected)

    @property
    def is_released(self) -> bool:
        """Whether somebody's command has ended it."""
        return isinstance(self.decision, GangReleased)

    @property
    def is_ending(self) -> bool:
        """Whether it is over, or somebody wants that."""
        return self.is_over or self.command is not None

    @property
    def is_finished(self) -> bool:
        """Whether nothing is held for it any more, by anybody."""
        if self.is_released:
            return isinstance(self.confirmation, ClaimsReleased)
        return self.is_over

    @property
    def is_ended_by_us(self) -> bool:
        """Whether this publisher gave it up, to ask for its pods again."""
        return self.command is not None and is_ours(self.command)

    def _confirms(self, decision: GangAllocated) -> bool:
        said = self.confirmation
        if said is None or isinstance(said, ClaimsReleased):
            return False
        return said.attempt == decision.attempt


def is_ours(command: CommandMessage) -> bool:
    """Whether a publisher gave the gang up, so that its pods are asked for again."""
    return isinstance(command, CancelGang) and command.reason.startswith(OURS)


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

    def apply(
        self,
        message: SubmitGang | DecisionMessage | ConfirmationMessage | CommandMessage,
        sequence: int,
    ) -> GroupKey | None:
        """Take a message in; gives the group concerned, if it is known.

        `sequence` is its place in its stream: of decisions and of confirmations the
        newest counts, though our own are believed before they are read.
        """
        if message.uid in self._forgotten:
            return None
        known = self._all.get(message.uid) or Submission(uid=message.uid)
        after = _with(known, message, sequence)
        self._all[message.uid] = after
        group = after.group
        if group is not None:
            self._of_group.setdefault(group, set()).add(message.uid)
        return group

    def correct(
        self, uid: GangUID, confirmation: ConfirmationMessage | None, sequence: int
    ) -> None:
        """Believe that this is what was last confirmed, whatever was known."""
        known = self._all.get(uid)
        if known is not None:
            self._all[uid] = replace(
                known, confirmation=confirmation, confirmed_at=sequence
            )

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
            self._forgotten[uid] = known is not None and known.is_ended_by_us
            if len(self._forgotten) > _FORGOTTEN:
                self._forgotten.popitem(last=False)


def _with(
    known: Submission,
    message: SubmitGang | DecisionMessage | ConfirmationMessage | CommandMessage,
    sequence: int,
) -> Submission:
    if isinstance(message, SubmitGang):
        return replace(known, message=message)
    if isinstance(message, CommandMessage):
        # Of many the one of others counts: it says that nobody wants the gang.
        if known.command is not None and not is_ours(known.command):
            return known
        return replace(known, command=message)
    if isinstance(message, DecisionMessage):
        if sequence < known.decided_at:
            return known
        return replace(known, decision=message, decided_at=sequence)
    if sequence < known.confirmed_at:
        return known
    return replace(known, confirmation=message, confirmed_at=sequence)
