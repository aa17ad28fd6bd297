"""The life of a gang: what was last said of it decides its phase, in any order.

Submissions, decisions, confirmations and commands come from different streams, and
after a restart in any order. So nothing is stepped through: a record keeps the last
message of each stream, and the phase follows from them. Knows nothing of devices.
"""

from __future__ import annotations

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.gang import GangPhase
from contracts.ids import GangUID, Namespace
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
    ReleaseOutcome,
    SubmitGang,
)


class GangRecord(Struct, frozen=True, kw_only=True):
    """The last message of each stream about one gang."""

    uid: GangUID
    namespace: Namespace
    submission: SubmitGang | None = None
    order: int = 0
    """Stream sequence of the submission: its age among gangs."""
    decision: DecisionMessage | None = None
    decision_sequence: int = 0
    """Stream sequence of the decision: an older one changes nothing."""
    confirmation: ConfirmationMessage | None = None
    command: CommandMessage | None = None
    tried: int = -1
    """`Snapshot.growth` when a solve last said no; not tried before: -1."""

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
                return GangPhase.WRITTEN
            case GatesOpened(attempt=confirmed) if confirmed == attempt:
                return GangPhase.RUNNING
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
    def allocated(self) -> GangAllocated | None:
        """The decision whose devices count as taken."""
        if self.phase.holds_devices and isinstance(self.decision, GangAllocated):
            return self.decision
        return None

    @property
    def placed(self) -> GangAllocated | None:
        """The decision that its pods run by or will: taken, or Running."""
        running = self.phase is GangPhase.RUNNING
        if running and isinstance(self.decision, GangAllocated):
            return self.decision
        return self.allocated

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the gang waits or was rejected."""
        match self.decision:
            case GangPending(reasons=reasons) | GangRejected(reasons=reasons):
                return reasons
            case GangAllocated() if self.phase is GangPhase.PENDING:
                return (void_reason(self.confirmation),)
            case _:
                return ()

    @property
    def wants_decision(self) -> bool:
        """Whether a solve should look at it."""
        return (
            self.submission is not None
            and self.command is None
            and self.phase is GangPhase.PENDING
        )

    @property
    def is_over(self) -> bool:
        """Whether its whole life is known, and nothing can follow."""
        return self.submission is not None and self.phase.is_terminal

    @property
    def ending(self) -> ReleaseOutcome | None:
        """How its life should end now; None: it should not."""
        if self.command is None or self.submission is None or self.phase.is_terminal:
            return None
        if isinstance(self.command, CancelGang):
            return ReleaseOutcome.CANCELLED
        if self.placed is not None:
            return ReleaseOutcome.COMPLETED
        return ReleaseOutcome.CANCELLED


def void_reason(confirmation: ConfirmationMessage | None) -> Reason:
    """Say why an allocation that was decided does not hold."""
    match confirmation:
        case AllocationRefused(reason=text) | AllocationLost(reason=text):
            return Reason(rule=Rule.WITHDRAWN, message=text)
        case AllocationWritten() | GatesOpened() | ClaimsReleased() | None:
            return Reason(rule=Rule.WITHDRAWN)


def with_submission(record: GangRecord, message: SubmitGang, order: int) -> GangRecord:
    """Take in a submission; the first one counts."""
    if record.submission is not None:
        return record
    return structs.replace(record, submission=message, order=order)


def with_decision(
    record: GangRecord, message: DecisionMessage, sequence: int
) -> GangRecord:
    """Take in what the solver decided; the newest counts, in whatever order."""
    if sequence < record.decision_sequence:
        return record
    return structs.replace(record, decision=message, decision_sequence=sequence)


def with_confirmation(record: GangRecord, message: ConfirmationMessage) -> GangRecord:
    """Take in what became of a decision; of older attempts nothing is kept.

    Nor are the names of pods: they are for people, and many.
    """
    if isinstance(message, AllocationWritten) and message.pods:
        message = structs.replace(message, pods=())
    known, new = _attempt_of(record.confirmation), _attempt_of(message)
    if known is not None and new is not None and new < known:
        return record
    return structs.replace(record, confirmation=message)


def with_command(record: GangRecord, message: CommandMessage) -> GangRecord:
    """Take in that somebody wants the gang to end."""
    return structs.replace(record, command=message)


def _attempt_of(message: ConfirmationMessage | None) -> int | None:
    match message:
        case (
            AllocationWritten(attempt=attempt)
            | GatesOpened(attempt=attempt)
            | AllocationRefused(attempt=attempt)
            | AllocationLost(attempt=attempt)
        ):
            return attempt
        case ClaimsReleased() | None:
            return None
