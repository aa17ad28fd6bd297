"""What was decided for a batch: the pure result, before the bus gives it a number.

No time, no epoch, no attempt: those belong to the messages that carry it. So the
bytes of a Decision repeat when its Problem does.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.allocation import Reason
from contracts.codec import Codec
from contracts.ids import GangUID, Namespace
from contracts.messages import MemberAllocated
from solver.engine import Statistics, Status, TierValue


class GangDecision(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """What was decided for one gang: members, or reasons."""

    uid: GangUID
    namespace: Namespace = Namespace("")
    name: str
    members: tuple[MemberAllocated, ...] = ()
    reasons: tuple[Reason, ...] = ()
    rejected: bool = False
    """Whether the answer can never change while the gang stays as written."""
    failed: bool = False
    """Whether the reasons are errors of the input, not a lack of devices."""

    @property
    def verdict(self) -> str:
        """`allocated`, `none` or `error`."""
        if not self.reasons:
            return "allocated"
        return "error" if self.failed or self.rejected else "none"


class Decision(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was decided for a batch."""

    problem: str
    """Hash of the Problem."""
    status: Status
    objective: tuple[TierValue, ...]
    gangs: tuple[GangDecision, ...]
    """In the order of the Problem."""
    statistics: Statistics


DECISION: Codec[Decision] = Codec(Decision, "decision")
