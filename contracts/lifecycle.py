"""The life of a gang: its messages, folded into its phase.

Submissions, commands, decisions and confirmations travel in four streams. Each is read
on its own, so what they say of a gang comes in any order between them, and after a
restart it begins with the last message of each. So nothing is stepped through: a record
keeps one message of each stream, and everything else follows from these.

One rule says which message that is: the last of its stream, by its sequence there.

- What comes again, or late, is not later than what is kept and changes nothing.
- Who publishes a message may apply it before it is read back, with the sequence that
  the stream gave it. A submission that was not stored, as another of its gang was there
  already, has no sequence (0) and gives way to the one that is read.
- Another submission is another life: when it was stored, nothing of the one before was
  left in the streams.
- Of commands somebody else's counts before any of the publisher's own. The publisher
  cancels a gang to ask for its pods anew; that nobody wants them outweighs it.

Attempts are not compared here: what was confirmed of one attempt counts for the
decision of that attempt, and says nothing of another. Knows no devices and no objects
of Kubernetes.
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Self

from msgspec import Struct, structs

from contracts.allocation import UNTRIED, Reason, Rule
from contracts.durations import parse_duration
from contracts.gang import GangPhase
from contracts.ids import GangKey, GangUID, Namespace
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    CommandMessage,
    ConfirmationMessage,
    DecisionMessage,
    ExpectedStart,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    NodesLacking,
    Preemption,
    ReleaseOutcome,
    SubmissionMessage,
    SubmitGang,
)
from contracts.times import read_time

LifecycleMessage = (
    SubmissionMessage | CommandMessage | DecisionMessage | ConfirmationMessage
)
"""A message about a gang."""
PUBLISHER = "publisher: "
"""Begins the reason of a cancellation by which the publisher itself ends a gang."""
PREEMPTED = "Preempted"
"""The reason that people read: its pods are evicted for another gang."""


class SubmissionSeen(Struct, frozen=True, kw_only=True):
    """A submission, and when the server stored it: seconds since the epoch."""

    key: GangKey
    at_s: float


class GangRecord(Struct, frozen=True, kw_only=True):
    """One gang: the message of each stream that counts, and what follows from them."""

    uid: GangUID
    namespace: Namespace
    submission: SubmitGang | None = None
    submission_sequence: int = 0
    """Its place in the stream, which is the gang's age among gangs."""
    command: CommandMessage | None = None
    command_sequence: int = 0
    decision: DecisionMessage | None = None
    decision_sequence: int = 0
    confirmation: ConfirmationMessage | None = None
    confirmation_sequence: int = 0
    """A publisher's next confirmation is only stored if this is still the last."""
    waits_since_s: float = 0.0
    """When it was submitted, seconds since the epoch; 0: not known."""
    placed_since_s: float = 0.0
    """When the decision came by which it has its first pods."""
    aged: int = 0
    """Steps of priority that it has gained by waiting, as the solver noted last."""

    @classmethod
    def of(cls, message: LifecycleMessage) -> Self:
        """Begin the record of the gang that a message is about."""
        return cls(uid=message.uid, namespace=message.key.namespace)

    @property
    def key(self) -> GangKey:
        """By what it is known: a uid is one namespace's alone."""
        return GangKey(self.namespace, self.uid)

    # --- messages in ----------------------------------------------------------------

    def apply(
        self, message: LifecycleMessage, sequence: int, time_s: float = 0.0
    ) -> Self:
        """Take a message in.

        `sequence` is its place in its stream, `time_s` when it was stored there.
        """
        if isinstance(message, SubmissionMessage):
            if sequence < self.submission_sequence:
                return self
            if 0 < self.submission_sequence < sequence:
                return self._begin_anew(message, sequence, time_s)
            return structs.replace(
                self,
                submission=message,
                submission_sequence=sequence,
                waits_since_s=time_s or self.waits_since_s,
            )
        if isinstance(message, DecisionMessage):
            if sequence < self.decision_sequence:
                return self
            return self._decide(message, sequence, time_s)
        if isinstance(message, CommandMessage):
            if self._outweighs(message, sequence):
                return self
            return structs.replace(self, command=message, command_sequence=sequence)
        if sequence < self.confirmation_sequence:
            return self
        return self.with_confirmation(message, sequence)

    def _decide(self, message: DecisionMessage, sequence: int, time_s: float) -> Self:
        since_s = self.placed_since_s
        if not isinstance(message, GangAllocated):
            since_s = 0.0
        elif message.preempted is not None:
            # It is told that it must go, not placed anew.
            since_s = since_s or read_time(message.preempted.since) or time_s
        elif not message.kept or not since_s:
            # More pods do not let the others run any longer.
            is_known = message == self.decision and since_s
            since_s = since_s if is_known else time_s
        return structs.replace(
            self,
            decision=message,
            decision_sequence=sequence,
            placed_since_s=since_s,
        )

    def _begin_anew(
        self, message: SubmissionMessage, sequence: int, time_s: float
    ) -> Self:
        """Begin another life, of which a decision may have been read already.

        A subject takes one submission: the one before was removed, with all that was
        said of it, when its gang had been over for long.
        """
        record = type(self).of(message).apply(message, sequence, time_s)
        if self.decision is None or self.is_over:
            return record
        decided_s = self.placed_since_s
        return record.apply(self.decision, self.decision_sequence, decided_s)

    def with_confirmation(
        self, message: ConfirmationMessage | None, sequence: int
    ) -> Self:
        """Let this be what was confirmed last, whatever was known before.

        The names of pods are left out: they are for people, and many.
        """
        if isinstance(message, AllocationWritten) and message.pods:
            message = structs.replace(message, pods=())
        return structs.replace(
            self, confirmation=message, confirmation_sequence=sequence
        )

    def _outweighs(self, message: CommandMessage, sequence: int) -> bool:
        """True if the command that is kept outweighs this one."""
        if self.command is None:
            return False
        kept = (not is_by_publisher(self.command), self.command_sequence)
        return kept > (not is_by_publisher(message), sequence)

    # --- where it is ----------------------------------------------------------------

    @property
    def name(self) -> str:
        """The gang's name, once its submission is known."""
        return "" if self.submission is None else self.submission.gang.metadata.name

    @property
    def phase(self) -> GangPhase:
        """Where the gang is in its life."""
        match self.decision:
            case GangRejected():
                return GangPhase.REJECTED
            case GangReleased(outcome=ReleaseOutcome.COMPLETED):
                return GangPhase.COMPLETED
            case GangReleased():
                return GangPhase.CANCELLED
            case GangAllocated(attempt=attempt):
                return self._phase_of_attempt(attempt)
            case GangPending() | None:
                return GangPhase.PENDING

    def _phase_of_attempt(self, attempt: int) -> GangPhase:
        match self.confirmation:
            case AllocationWritten(attempt=confirmed) if confirmed == attempt:
                return GangPhase.ALLOCATED
            case GatesOpened(attempt=confirmed) if confirmed == attempt:
                return GangPhase.RUNNING
            case AllocationRefused() if self.is_growth_refused:
                return GangPhase.ALLOCATED
            case AllocationRefused(attempt=void) | AllocationLost(attempt=void) if (
                void == attempt
            ):
                return GangPhase.PENDING
            case _:
                return GangPhase.DECIDED

    @property
    def attempt(self) -> int:
        """The last attempt that was decided; 0: none yet."""
        match self.decision:
            case GangAllocated(attempt=attempt) | GangPending(attempt=attempt):
                return attempt
            case _:
                return 0

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the gang waits or was rejected."""
        match self.decision:
            case GangPending(reasons=reasons) | GangRejected(reasons=reasons):
                return reasons
            case GangAllocated() if self.phase is GangPhase.PENDING:
                return (_void_reason(self.confirmation),)
            case _:
                return ()

    @property
    def expected(self) -> ExpectedStart | None:
        """When the gang starts at the latest; None: it is not promised anything."""
        decision = self.decision
        return decision.expected if isinstance(decision, GangPending) else None

    @property
    def lacks(self) -> tuple[NodesLacking, ...]:
        """Nodes that would let it in; empty: none, or nobody knows which."""
        return self.decision.lacks if isinstance(self.decision, GangPending) else ()

    @property
    def duration_s(self) -> int | None:
        """How many seconds it runs at most; None: nobody knows.

        What is no duration was refused with its submission.
        """
        text = "" if self.submission is None else self.submission.gang.spec.duration
        return parse_duration(text) if text else None

    @property
    def ends_by_s(self) -> int | None:
        """When a gang with a place is to have ended; None: nobody knows."""
        if self.placed is None or self.duration_s is None:
            return None
        return ceil(self.placed_since_s) + self.duration_s

    @property
    def is_answered(self) -> bool:
        """True if it was decided: it is in, was tried in vain, or has ended."""
        return self.decision is not None and is_answer(self.decision)

    # --- what was decided for it ----------------------------------------------------

    @property
    def placed(self) -> GangAllocated | None:
        """The decision that its pods run by, or will."""
        decision = self.decision
        if not isinstance(decision, GangAllocated) or self.phase is GangPhase.PENDING:
            return None
        return without_growth(decision) if self.is_growth_refused else decision

    @property
    def allocated(self) -> GangAllocated | None:
        """The decision whose devices count as taken.

        While the gang runs that is for Kubernetes' own objects to say.
        """
        return self.placed if self.phase.holds_devices else None

    @property
    def in_force(self) -> GangAllocated | None:
        """The decision that counts; None once the gang is ended."""
        return self.placed if self.command is None else None

    def preempted_at(self, now_s: float) -> Preemption | None:
        """Return for whom it must give up its place; None: it may stay.

        Once its end is asked for it is a gang that ends, whatever the time.
        """
        in_force = self.in_force
        said = None if in_force is None else in_force.preempted
        return said if said is not None and read_time(said.until) > now_s else None

    @property
    def wants_decision(self) -> bool:
        """True if a solve should decide it."""
        return (
            self.submission is not None
            and self.command is None
            and self.phase is GangPhase.PENDING
        )

    @property
    def wants_growth(self) -> bool:
        """True if a solve may place its extra pods.

        Where pods wait for it, they are asked for by themselves once it runs.
        """
        return (
            self.submission is not None
            and not self.submission.places
            and self.command is None
            and self.allocated is not None
            and bool(self.allocated.growing)
        )

    @property
    def is_tried(self) -> bool:
        """True if a solve should decide it or let it grow."""
        return self.wants_decision or self.wants_growth

    @property
    def is_written(self) -> bool:
        """True if all claims of the decision are confirmed to be written."""
        return self.phase in (GangPhase.ALLOCATED, GangPhase.RUNNING)

    @property
    def was_written(self) -> bool:
        """True if the last confirmation, of any attempt, allows gates to be opened."""
        opens = isinstance(self.confirmation, AllocationWritten | GatesOpened)
        return opens or self.is_growth_refused

    @property
    def is_growth_refused(self) -> bool:
        """True if the gang is as it was before the decision that let it grow."""
        match self.decision, self.confirmation:
            case GangAllocated() as decision, AllocationRefused() as refused:
                is_about = decision.attempt == refused.attempt
                return is_about and refused.keeps and bool(decision.kept)
            case _:
                return False

    @property
    def is_open(self) -> bool:
        """True if all its gates are confirmed to be open."""
        return isinstance(self.confirmation, GatesOpened)

    # --- its end --------------------------------------------------------------------

    @property
    def ending(self) -> ReleaseOutcome | None:
        """How its life should end now; None: it should not."""
        if self.command is None or self.submission is None or self.is_over:
            return None
        if isinstance(self.command, CancelGang):
            return ReleaseOutcome.CANCELLED
        if self.placed is not None:
            return ReleaseOutcome.COMPLETED
        return ReleaseOutcome.CANCELLED

    @property
    def is_ending(self) -> bool:
        """True if the gang has ended, or a command asks for it."""
        return self.is_over or self.command is not None

    @property
    def is_over(self) -> bool:
        """True if nothing more will be decided for it."""
        return self.phase.is_terminal

    @property
    def is_released(self) -> bool:
        """True if a command has ended it."""
        return isinstance(self.decision, GangReleased)

    @property
    def is_finished(self) -> bool:
        """True if nothing is held for it any longer."""
        if self.is_released:
            return isinstance(self.confirmation, ClaimsReleased)
        return self.is_over

    @property
    def is_ended_by_publisher(self) -> bool:
        """True if only a publisher ended it: pods that wait are still wanted."""
        return self.ended_by is not None and is_by_publisher(self.ended_by)

    @property
    def ended_by(self) -> CommandMessage | None:
        """The command that ends the gang, or ended it: the decision keeps it, too."""
        if self.command is None and isinstance(self.decision, GangReleased):
            return self.decision.command
        return self.command


def is_preemption(command: CommandMessage) -> bool:
    """True if a publisher ended the gang for another."""
    return command.reason.startswith(f"{PUBLISHER}{PREEMPTED}: ")


def is_by_publisher(command: CommandMessage) -> bool:
    """True if a publisher ended the gang: pods that wait are submitted again."""
    return command.reason.startswith(PUBLISHER)


def is_answer(decision: DecisionMessage) -> bool:
    """True if it was decided; a notice that a gang was not tried yet is no answer."""
    match decision:
        case GangPending(reasons=reasons):
            return not reasons or any(reason.rule not in UNTRIED for reason in reasons)
        case _:
            return True


def without_growth(decision: GangAllocated) -> GangAllocated:
    """Return a decision for the pods alone that had a place before it."""
    growing, members = Counter(decision.growing), []
    for pod in decision.members:
        if pod.index < decision.kept.get(pod.member, 0):
            members.append(pod)
        else:
            growing[pod.member] += 1
    return structs.replace(
        decision, members=tuple(members), growing=dict(growing), kept={}
    )


def _void_reason(confirmation: ConfirmationMessage | None) -> Reason:
    """Return why an allocation that was decided does not hold."""
    match confirmation:
        case AllocationRefused(reason=text) | AllocationLost(reason=text):
            return Reason(rule=Rule.WITHDRAWN, message=text)
        case _:
            return Reason(rule=Rule.WITHDRAWN)
