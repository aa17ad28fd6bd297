"""The Problem: everything that an answer depends on, frozen, complete and hashed.

It is a list of pages (the cluster), the gangs of the batch in the order of their
urgency, the pods that run and matter to the rules between pods, what is left of their
queues' quotas, the kinds of pods that are expected later, the selector table and
the parameters. Two equal Problems have one hash and one answer; nothing is looked up
later, not even the time.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct, structs

from contracts.codec import Codec
from contracts.features import Features
from contracts.ids import NodeName
from contracts.pods.pod_rules import PodRules
from solver.errors import ExpectedError
from solver.problem.affinity.rules import ResolvedRules
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, RequestPart
from solver.selectors.table import SelectorRows, SelectorTable
from solver.snapshot.pages import Page, Pages
from solver.snapshot.running import RunningPod
from solver.tiers import Tier


class NeighbourPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods that run on a node and matter to the rules of a batch."""

    node: NodeName
    pod: RunningPod
    """With the labels alone that some rule of the batch reads."""


class QuotaPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One quota of a ClusterQueue or a Cohort, and what was used of it."""

    name: str
    is_cohort: bool = False
    parent: str = ""
    """The cohort that it is in; empty: none."""
    flavor: str
    resource: str
    quota: int
    """Its own, and what those in it lend; cpu in thousandths, else whole units."""
    borrowing_limit: int | None = None
    """Most that is used beyond it; None: whatever the cohort has."""
    lending_limit: int | None = None
    """Most of it that others may use; None: all of it."""
    used: int = 0
    """Before the batch."""


class ExpectedPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """A kind of pod that is likely to come, for which room is worth keeping."""

    member: MemberPart
    """Its count has no meaning."""
    weight: int
    """How likely it is beside the others."""
    size: int
    """Thousandths of a device that one pod takes: 1000 is one whole device, and of a
    device that draws from counters all of them."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= MAX_WEIGHT or not 0 <= self.size <= MAX_SIZE:
            raise ExpectedError(self.weight, self.size)


def asks_for_shares(member: MemberPart) -> bool:
    """Return True if a pod asks for amounts of a device's capacity."""
    return any(
        alternative.capacity
        for claim in member.claims
        for request in claim.requests
        for alternative in request.alternatives
    )


def keep_countable(member: MemberPart) -> MemberPart:
    """Strip an expected member to what room for it is counted by.

    Only first choices that ask for a number of devices of their own: what bounds
    nothing (all devices, admin access, none) is left out, and so are constraints that
    devices differ, and rules between pods. So room is an estimate by counting, never a
    promise.
    """
    claims = tuple(map(_keep_countable_claim, member.claims))
    return structs.replace(
        member,
        claims=claims,
        labels={},
        varying_labels=(),
        pod_rules=PodRules(),
        resolved=ResolvedRules(),
    )


def _keep_countable_claim(claim: ClaimPart) -> ClaimPart:
    return structs.replace(
        claim,
        requests=tuple(
            structs.replace(request, alternatives=request.alternatives[:1])
            for request in claim.requests
            if _is_countable(request)
        ),
        constraints=tuple(
            constraint
            for constraint in claim.constraints
            if constraint.match_attribute is not None
        ),
    )


def _is_countable(request: RequestPart) -> bool:
    first = request.alternatives[0]
    return first.count > 0 and not (first.all_devices or first.admin_access)


MAX_EXPECTED = 64
"""Expected kinds of one Problem."""
DEVICE = 1000
"""The thousandths of one device."""
MAX_WEIGHT, MAX_SIZE = 10_000, 1_000_000
"""Limits of an expected kind; they keep values within 64 bits."""


class Parameters(Struct, frozen=True, kw_only=True, rename="camel"):
    """What else an answer depends on."""

    version: str
    """Version of the decision procedure; replay compares bytes within one."""
    work_limit: float = 8.0
    """CP-SAT deterministic time of one solve."""
    seed: int = 1
    last_tier: Tier = Tier.NODES
    """The last tier of the objective that is pursued and reported."""
    features: Features = Features()


class ProblemRoot(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The Problem with its pages by hash: what is hashed and recorded."""

    pages: tuple[str, ...]
    gangs: tuple[GangPart, ...]
    selectors: tuple[SelectorRows, ...]
    parameters: Parameters
    expected: Annotated[tuple[ExpectedPart, ...], Meta(max_length=MAX_EXPECTED)] = ()
    neighbours: tuple[NeighbourPart, ...] = ()
    quotas: tuple[QuotaPart, ...] = ()


ROOT: Codec[ProblemRoot] = Codec(ProblemRoot, "problem")


class Problem:
    """What is to be decided; see the module."""

    def __init__(
        self,
        pages: Pages | tuple[Page, ...],
        gangs: tuple[GangPart, ...],
        selectors: SelectorTable,
        parameters: Parameters,
        expected: tuple[ExpectedPart, ...] = (),
        *,
        neighbours: tuple[NeighbourPart, ...] = (),
        quotas: tuple[QuotaPart, ...] = (),
    ) -> None:
        self.pages = tuple(pages)
        self.neighbours = neighbours
        self.quotas = quotas
        self.gangs = gangs
        self.selectors = selectors
        self.parameters = parameters
        self.expected = expected[:MAX_EXPECTED]
        """Those listed first; none where what is left over does not matter."""
        if parameters.last_tier.place < Tier.LEFTOVER.place:
            self.expected = ()

    @cached_property
    def root(self) -> ProblemRoot:
        """The Problem with its pages by hash."""
        return ProblemRoot(
            pages=tuple(page.sha for page in self.pages),
            gangs=self.gangs,
            selectors=self.selectors.rows(),
            parameters=self.parameters,
            expected=self.expected,
            neighbours=self.neighbours,
            quotas=self.quotas,
        )

    def with_gangs(self, gangs: tuple[GangPart, ...]) -> Problem:
        """Return the same Problem for other gangs."""
        return Problem(
            self.pages,
            gangs,
            self.selectors,
            self.parameters,
            self.expected,
            neighbours=self.neighbours,
            quotas=self.quotas,
        )

    def with_pages(self, pages: tuple[Page, ...]) -> Problem:
        """Return the same Problem on another cluster."""
        return Problem(
            pages,
            self.gangs,
            self.selectors,
            self.parameters,
            self.expected,
            neighbours=self.neighbours,
            quotas=self.quotas,
        )

    @cached_property
    def data(self) -> bytes:
        """Canonical bytes of the root."""
        return ROOT.encode(self.root)

    @cached_property
    def hash(self) -> str:
        """Hash of the Problem, in hex."""
        return sha256(self.data).hexdigest()
