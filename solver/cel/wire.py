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
    """Whether system calls are filtered."""
    landlock: int
    """The version of Landlock that takes files and TCP away; 0: none."""


class Limits(Struct, frozen=True, kw_only=True):
    """What a sandbox may use."""

    memory_bytes: int = 1 << 30
    """Address space of the process."""
    resident_bytes: int = 256 << 20
    """Beyond this a process is replaced: the engine leaks when it calls Python."""
    evaluations: int = 50_000
    """Likewise."""
    cpu_s: float = 2.0
    """CPU time of one evaluation, compiling included."""
    wall_s: float = 60.0
    """Silence after which a process is given up; far more than `cpu_s`."""
    losses: int = 3
    """Processes that one expression may cost in one call."""


class EvaluationBatch(Struct, frozen=True):
    """An expression and the (driver, device) pairs to judge by it."""

    expression: str
    devices: tuple[tuple[str, Device], ...]


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the expression says of the next device."""

    verdict: Verdict
    is_tired: bool = False
    """The process wants to be replaced, and leaves the rest of the work."""


CONFINEMENT: Codec[Confinement] = Codec(Confinement, "bounds of the sandbox")
REPLY: Codec[Reply] = Codec(Reply, "reply of the sandbox")
