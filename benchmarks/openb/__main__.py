"""Unallocated GPUs of the openb trace: Moorings beside random fit, best fit and FGD.

The protocol of Weng et al. (USENIX ATC 2023): pods arrive one by one until they have
asked for 1.3 times the fleet's GPUs, nobody leaves, who does not fit is refused for
good. All policies see the same arrivals on the same nodes, and a referee places what
they propose. Small: one seed on every tenth node and a tenth of the pods; full: ten
seeds on all 1,213 nodes. Scope `devices` leaves CPU, memory and the pods that ask for
nothing else out for everybody.

    python -m benchmarks.openb [--size full] [--json FILE] [--seeds N] [--policy NAME]
        [--scope all|devices] [--batch N ...]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from benchmarks.openb.arrivals import arrivals
from benchmarks.openb.fgd import FragmentationGradient
from benchmarks.openb.fleet import Fleet
from benchmarks.openb.ours import Moorings
from benchmarks.openb.peers import BestFit, Peer, RandomFit
from benchmarks.openb.run import Outcome, one_by_one, play, row
from benchmarks.openb.trace import Trace, read_trace
from benchmarks.report import Row, parser, report
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.problem import Parameters
from solver.tiers import Tier
from solver.versions import VERSION

MakePeer = Callable[[Trace, Fleet, int], Peer]
PEERS: dict[str, MakePeer] = {
    "random fit": lambda _, __, seed: RandomFit(seed),
    "best fit, first by name": lambda _, __, ___: BestFit(),
    "best fit, random ties": lambda _, __, seed: BestFit(random.Random(seed)),
    "FGD, first by name": lambda trace, fleet, _: FragmentationGradient(trace, fleet),
    "FGD, random ties": lambda trace, fleet, seed: FragmentationGradient(
        trace, fleet, random.Random(seed)
    ),
}
OURS = "Moorings"
SCOPES = ("all", "devices")
BATCHES = (1, 50, 500)
SMALL_PART = 10


class Run(Struct, frozen=True, kw_only=True):
    """What is to be measured."""

    scope: str
    """`all` of what pods ask for, or `devices`."""
    trace: Trace
    seeds: Sequence[int]
    wanted: str = ""
    """What a policy's name must contain."""
    batches: Sequence[int] = BATCHES
    parameters: Parameters = Parameters(version=VERSION, last_tier=Tier.LEFTOVER)
    """Of our solves."""


def rows(run: Run) -> Iterator[Row]:
    """Measure every policy."""
    for name, make in PEERS.items():
        if run.wanted in name:
            outcomes = [peer_outcome(run, make, seed) for seed in run.seeds]
            yield {"scope": run.scope, **row(name, 1, outcomes)}
    if run.wanted in OURS:
        with SelectorEvaluator() as evaluator:
            for batch in run.batches:
                outcomes = [our_outcome(run, evaluator, s, batch) for s in run.seeds]
                yield {"scope": run.scope, **row(OURS, batch, outcomes)}


def peer_outcome(run: Run, make: MakePeer, seed: int) -> Outcome:
    """Play one seed through a peer."""
    fleet = Fleet(run.trace)
    peer = make(run.trace, fleet, seed)
    pods = arrivals(run.trace, seed)
    return play(run.trace, pods, fleet, one_by_one(peer, fleet), 1)


def our_outcome(
    run: Run, evaluator: SelectorEvaluator, seed: int, batch: int
) -> Outcome:
    """Play one seed through Moorings."""
    ours = Moorings(run.trace, evaluator, run.parameters)
    pods = arrivals(run.trace, seed)
    return play(run.trace, pods, Fleet(run.trace), ours.place, batch)


def options() -> argparse.Namespace:
    """Read the command line."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--seeds", type=int, help="how many; the first is --seed")
    arguments.add_argument(
        "--part", type=int, default=SMALL_PART, help="of small: 1 in N"
    )
    arguments.add_argument(
        "--policy", default="", help="only those with this in the name"
    )
    arguments.add_argument(
        "--batch",
        type=int,
        nargs="*",
        default=BATCHES,
        help="pods that we decide at once",
    )
    arguments.add_argument("--scope", choices=SCOPES, help="only this")
    return arguments.parse_args()


def main() -> None:
    """Measure and report."""
    arguments = options()
    small = arguments.size == "small"
    trace = read_trace().part(arguments.part) if small else read_trace()
    count = arguments.seeds or (1 if small else 10)
    report_rows: list[Row] = []
    for scope in SCOPES if arguments.scope is None else (arguments.scope,):
        run = Run(
            scope=scope,
            trace=trace if scope == "all" else trace.devices_only(),
            seeds=range(arguments.seed, arguments.seed + count),
            wanted=arguments.policy,
            batches=arguments.batch,
        )
        report_rows.extend(rows(run))
    report("openb", arguments, report_rows)


if __name__ == "__main__":
    main()
