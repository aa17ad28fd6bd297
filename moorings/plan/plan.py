"""The output of `moorings plan -o json`, a contract that others test against."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from contracts.allocation import AllocationResult, Reason
from contracts.claim import ResourceClaimConsumerReference
from moorings.plan.asking import WaitReason
from solver.decision import TierValue

NOTHING_UNDERSTOOD = (
    "error: nothing that was read requests devices, and some input was skipped"
)


class PlanPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a Plan; fields at their default are left out."""


class ClaimPlan(PlanPart, frozen=True, kw_only=True):
    """The allocation of one claim, or why it has none."""

    namespace: str
    name: str
    uid: str
    gang: str
    member: str
    index: int
    claim: str
    """Its name in the member."""
    pod: str = ""
    """Where there is one; it may be one that a controller is still to make."""
    node: str | None
    verdict: str
    """`allocated`, `none`, `waits` or `error`."""
    error_scope: str | None = None
    """`node`, `cluster` or `aborted`."""
    error: str | None = None
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    reasons: tuple[Reason | WaitReason, ...] = ()


class PodPlan(PlanPart, frozen=True, kw_only=True):
    """Where one pod of a gang goes."""

    name: str
    """Of the member."""
    index: int
    node: str
    pods: tuple[str, ...] = ()
    """Its name, in Kubernetes; nothing: it is not there yet."""


class GangPlan(PlanPart, frozen=True, kw_only=True):
    """The placement of one gang, or why it has none."""

    namespace: str
    name: str
    uid: str
    verdict: str
    """`allocated`, `none`, `waits` or `error`."""
    members: tuple[PodPlan, ...] = ()
    """The pods that are placed."""
    growing: dict[str, int] = {}
    """By member, so many more pods have no place yet, without which the gang is in."""
    reasons: tuple[Reason | WaitReason, ...] = ()


class PlanStatistics(PlanPart, frozen=True, kw_only=True):
    """How large it was and how long it took."""

    devices: int = 0
    nodes: int = 0
    device_kinds: int = 0
    node_kinds: int = 0
    engine: str = ""
    """`direct`, `pattern`, or empty: counting was enough."""
    engine_reason: str = ""
    patterns: int = 0
    settled_pods: int = 0
    """Pods of the input that are bound or finished: nothing is requested for them."""
    allocated_claims: int = 0
    """Claims of the input that hold their devices."""
    selector_evaluations: int = 0
    solve_seconds: float = 0.0
    total_seconds: float = 0.0


class Plan(Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to one plan."""

    id: Any = None
    kind: str = "Plan"
    status: str
    """`Optimal`, `Feasible`, `NotProven` or `Error`."""
    error: str | None = None
    objective: tuple[TierValue, ...] = ()
    claims: tuple[ClaimPlan, ...] = ()
    gangs: tuple[GangPlan, ...] = ()
    notes: tuple[str, ...] = ()
    """Where the input was not taken as it is written, or was skipped."""
    stats: PlanStatistics = PlanStatistics()
    problem_hash: str = ""

    @property
    def is_yes(self) -> bool:
        """True if everything requested is allocated."""
        verdicts = [gang.verdict for gang in self.gangs]
        return self.status != "Error" and all(v == "allocated" for v in verdicts)

    @property
    def has_errors(self) -> bool:
        """True if anything could not be decided."""
        verdicts = [gang.verdict for gang in self.gangs]
        return self.status == "Error" or "error" in verdicts
