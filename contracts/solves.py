"""Records of solves on the bus, for replay (subject `solve`)."""

from __future__ import annotations

from contracts.ids import ClusterName, GangKey, SolveID
from contracts.messages import Message
from contracts.structs import Count


class RecordMessage(Message, frozen=True, kw_only=True):
    """A message about one recorded solve."""

    cluster: ClusterName
    solve: SolveID

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster and solve."""
        return (self.cluster, self.solve)


class SolveOpened(RecordMessage, frozen=True, kw_only=True):
    """A Problem is recorded and about to be solved (subject `solve`)."""

    problem: str
    """Hash of the Problem's root, which is also the name of its blob."""
    version: str
    """Of Moorings."""
    platform: str
    """Where it was first solved, such as `linux-x86_64-cpython-3.11`."""
    dependencies: dict[str, str] = {}
    """Versions that the bytes of the answer depend on."""
    epoch: Count
    gangs: tuple[GangKey, ...] = ()
    is_promise: bool = False
    """True if it is about a time to come: what is kept for a gang that waits."""
    opened_at: str
    """RFC 3339, for people."""


class SolveDecided(RecordMessage, frozen=True, kw_only=True):
    """The answer of a recorded solve."""

    problem: str
    decision: str
    """Hash of the Decision's bytes, which is also the name of its blob."""
    status: str
    """`Optimal`, `Feasible` or `NotProven`."""
    allocated: Count
    pending: Count
    rejected: Count
    solve_seconds: float


SolveMessage = SolveOpened | SolveDecided
