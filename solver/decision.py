"""What was decided for a batch: the pure result, before the bus gives it a number.

No time, no epoch, no attempt: those belong to the messages that carry it. So the
bytes of a Decision repeat when its Problem does.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from contracts.allocation import Reason
from contracts.codec import Codec
from contracts.ids import GangKey, GangUID, Namespace
from contracts.messages import MemberAllocated
from solver.tiers import Tier


class Status(StrEnum):
    """How far an answer is proven in gangs, alternatives and topology."""

    OPTIMAL = "Optimal"
    FEASIBLE = "Feasible"
    NOT_PROVEN = "NotProven"


class TierValue(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One tier of the objective: its value, and what no answer exceeds."""

    tier: Tier
    priority: int | None = None
    value: int
    bound: int | None
    """None: not proven."""


class Statistics(Struct, frozen=True, kw_only=True, rename="camel"):
    """How large the Problem and its models were; a function of the Problem, too."""

    node_kinds: int = 0
    device_kinds: int = 0
    engine: str = ""
    """`direct`, `pattern`, `greedy`, `split` or, where counting was enough, empty."""
    engine_reason: str = ""
    """Why the other engine was not asked."""
    patterns: int = 0
    models: int = 0
    variables: int = 0
    constraints: int = 0
    work: float = 0.0
    """Deterministic time."""


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
    """True if the answer can never change while the gang stays as written."""
    failed: bool = False
    """True if the reasons are errors of the input, not a lack of devices."""

    @property
    def key(self) -> GangKey:
        """Its uid with its namespace: uids are unique within one only."""
        return GangKey(self.namespace, self.uid)

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
