"""Pods that come and go one by one: how often a pod for a whole node fits at once.

100 nodes of 8 GPUs. Pods of 1, 2, 4 and 8 GPUs come in shares drawn by seed; where 85 %
of the GPUs are held, a random pod ends before the next one comes, and one ends after
each pod that does not fit. Beside Moorings, by the service's way of choosing: the order
of kube-scheduler's default scores (least allocated CPU and memory, first by name), and
first fit.

    python -m benchmarks.openb.whole_nodes [--size full] [--json FILE]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from msgspec import Struct

from benchmarks.openb.fleet import Fleet, Placement
from benchmarks.openb.ours import Moorings
from benchmarks.openb.peers import FirstFit, LeastAllocated, Peer
from benchmarks.openb.trace import MILLI, Trace, TraceNode, TracePod
from benchmarks.report import Row, arguments, report
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.problem import Parameters
from solver.versions import VERSION

NODES, GPUS, FILL = 100, 8, 0.85
SIZES = {1: 4.0, 2: 2.0, 4: 1.5, 8: 1.0}
"""GPUs of a pod, and how often such pods come beside the others, before chance."""
CPU_MILLI, MEMORY_MIB = 4_000, 16_384
"""What a pod needs for each GPU; a node has twice as much."""


class Step(Struct, frozen=True):
    """What happens: a pod comes, or chance ends one of those that run."""

    pod: TracePod
    chance: float


class Fits(Struct):
    """How many pods for a whole node came, and how many fitted at once."""

    came: int = 0
    fitted: int = 0

    @property
    def share(self) -> float:
        """The share that fitted."""
        return self.fitted / self.came if self.came else 1.0


class Policy(Struct, frozen=True):
    """Places single pods, and is told which ended."""

    place: Callable[[TracePod], Placement | None]
    end: Callable[[TracePod, Placement], None]


def steps(seed: int, count: int) -> Iterator[Step]:
    """Draw the pods that come, with the chance by which one ends."""
    draw = random.Random(seed)
    weights = [often * draw.uniform(0.2, 1.0) for often in SIZES.values()]
    pods = [_pod(gpus) for gpus in SIZES]
    for _ in range(count):
        yield Step(draw.choices(pods, weights)[0], draw.random())


def play(policy: Policy, seed: int, count: int) -> Fits:
    """Let so many pods come and go."""
    fits, running, held = Fits(), list[tuple[TracePod, Placement]](), 0
    draw = random.Random(seed + 1)

    def end_one(chance: float) -> int:
        """Return the GPUs that are free again."""
        pod, placement = running.pop(int(chance * len(running)))
        policy.end(pod, placement)
        return pod.gpus

    for step in steps(seed, count):
        while held >= FILL * NODES * GPUS:
            held -= end_one(draw.random())
        placement = policy.place(step.pod)
        if step.pod.gpus == GPUS:
            fits.came += 1
            fits.fitted += placement is not None
        if placement is not None:
            running.append((step.pod, placement))
            held += step.pod.gpus
        elif running:
            held -= end_one(step.chance)
    return fits


def fleet() -> Trace:
    """Make the nodes, and each pod once."""
    nodes = tuple(
        TraceNode(
            name=f"node-{number:03}",
            cpu_milli=2 * GPUS * CPU_MILLI,
            memory_mib=2 * GPUS * MEMORY_MIB,
            gpus=GPUS,
            model="any",
        )
        for number in range(NODES)
    )
    return Trace(nodes, tuple(map(_pod, SIZES)))


def of_peer(peer: Peer) -> Policy:
    """Let a peer place on a fleet of its own."""
    there = Fleet(fleet())

    def place(pod: TracePod) -> Placement | None:
        placement = peer.place(there, pod)
        if placement is not None:
            there.take(pod, placement)
        return placement

    return Policy(place, there.give_back)


def ours(evaluator: SelectorEvaluator) -> Policy:
    """Let Moorings place, by the service's way of choosing."""
    moorings = Moorings(fleet(), evaluator, Parameters(version=VERSION))
    return Policy(
        place=lambda pod: moorings.place([pod])[0],
        end=lambda _, placement: moorings.end(placement),
    )


def rows(seeds: int, count: int) -> Iterator[Row]:
    """Measure every policy on every seed."""
    with SelectorEvaluator() as evaluator:
        makers: dict[str, Callable[[], Policy]] = {
            "Moorings": lambda: ours(evaluator),
            "kube-scheduler's order": lambda: of_peer(LeastAllocated()),
            "first fit": lambda: of_peer(FirstFit()),
        }
        for seed in range(1, seeds + 1):
            shares = {
                name: round(play(make(), seed, count).share, 3)
                for name, make in makers.items()
            }
            yield {"seed": seed, **shares}


def _pod(gpus: int) -> TracePod:
    return TracePod(
        pods=1,
        cpu_milli=gpus * CPU_MILLI,
        memory_mib=gpus * MEMORY_MIB,
        gpus=gpus,
        gpu_milli=MILLI,
    )


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__ or "")
    is_small = options.size == "small"
    seeds, count = (2, 400) if is_small else (10, 1000)
    report("whole nodes", options, list(rows(seeds, count)))


if __name__ == "__main__":
    main()
