"""What the sandbox and its owner say to each other.

The owner pickles: it is trusted. The sandbox answers in JSON of one type, because
whoever breaks out of an expression must not get to unpickle in the owner. Each
expression has a connection of its own, so that nobody answers for another.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.codec import Codec
from contracts.device import Device
from solver.selectors.table import Verdict


class Confinement(Struct, frozen=True, kw_only=True):
    """What the kernel takes from whoever breaks out; the first thing a sandbox says."""

    seccomp: bool
    """True if system calls are filtered."""
    landlock: int
    """The version of Landlock that takes files and TCP away; 0: none."""


class Limits(Struct, frozen=True, kw_only=True):
    """What a sandbox may use."""

    memory_bytes: int = 1 << 30
    """Address space of the process."""
    resident_bytes: int = 256 << 20
    """Beyond this a process is replaced: the engine leaks when it calls Python."""
    evaluations: int = 50_000
    """Beyond this many a process is replaced, for the same reason."""
    compile_s: float = 2.0
    """CPU time of compiling one expression."""
    cpu_s: float = 0.25
    """CPU time of one evaluation; upstream's cost limit comes to about 0.1 s."""
    wall_s: float = 60.0
    """Silence after which a process is given up; far more than `cpu_s`."""
    losses: int = 3
    """Processes that one expression may cost."""


class Allowance(Struct, frozen=True, kw_only=True):
    """CPU time that evaluations may take: some, and a little more for each of them."""

    base_s: float = float("inf")
    look_s: float = 0.0
    most_s: float = float("inf")
    """Whatever they are."""

    def covers(self, spent_s: float, looks: int) -> bool:
        """True if so many evaluations may have taken so much."""
        return spent_s <= min(self.base_s + looks * self.look_s, self.most_s)

    def less(self, spent_s: float, looks: int) -> Allowance:
        """Return what is left of it after so many evaluations."""
        return Allowance(
            base_s=self.base_s + looks * self.look_s - spent_s,
            look_s=self.look_s,
            most_s=self.most_s - spent_s,
        )


UNLIMITED = Allowance()


class EvaluationBatch(Struct, frozen=True):
    """An expression and the (driver, device) pairs to judge by it."""

    expression: str
    devices: tuple[tuple[str, Device], ...]
    allowance: Allowance = UNLIMITED
    """Past it, the rest of the devices is left."""


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the expression says of the next device."""

    verdict: Verdict
    cpu_s: float = 0.0
    """CPU time that it took, without compiling."""
    is_tired: bool = False
    """The process wants to be replaced, and leaves the rest of the work."""
    is_spent: bool = False
    """The allowance is used up, and the rest of the work is left."""


CONFINEMENT: Codec[Confinement] = Codec(Confinement, "bounds of the sandbox")
REPLY: Codec[Reply] = Codec(Reply, "reply of the sandbox")
