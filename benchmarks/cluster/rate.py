"""How fast are the same pods bound with Moorings, and by kube-scheduler alone?

Pods of one device each, claims from a template, on nodes of 8 devices of a class that
is Moorings' alone, so that a policy prepares claims; everything is on this machine. The
ways:

  kube-scheduler  pods without gates; no Moorings runs
  lone pods       each waits at a gate of its own
  gangs of 8      pods by eights (the last gang has what is left)
  one gang        all of them

Seconds from the first pod sent until the last one was created, had its claim (from
Kubernetes' controller manager), its gate open, was bound. `share` is pods bound a
second as part of kube-scheduler's in the same round. Then processor seconds until all
were bound (and how many processors others had), and requests that write, a pod. Before
it is measured, kube-scheduler binds some pods that do not count, as Moorings does.

    python -m benchmarks.cluster.rate [--size full] [--pods N] [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from benchmarks.cluster import setup
from benchmarks.cluster.api_requests import per_pod, requests
from benchmarks.cluster.milestones import (
    BOUND,
    CLAIMED,
    CREATED,
    OPEN,
    Milestones,
    watched,
)
from benchmarks.processes import processes_of, usage, used
from benchmarks.report import Row, parser, print_tables, write
from tests.lab.cluster import Stack
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane

NODES = {"small": 12, "full": 100}
PODS = {"small": 60, "full": 500}
ROUNDS = {"small": 1, "full": 3}
WARM = 8
LIMIT_S = 200.0
ALONE, LONE, EIGHTS, ONE = "kube-scheduler", "lone pods", "gangs of 8", "one gang"


class Round(Struct, kw_only=True):
    """What was seen of all pods, one way."""

    way: str
    began_s: float
    seen: Milestones
    used: Row
    requests: Counter[str]

    @property
    def rate(self) -> float:
        """Pods bound a second."""
        return self.seen.count(BOUND) / (self.seen.last(BOUND) - self.began_s)


def sizes_of(way: str, pods: int) -> list[int]:
    """Return how large each gang is."""
    if way == ONE:
        return [pods]
    if way == EIGHTS:
        return [8] * (pods // 8) + ([pods % 8] if pods % 8 else [])
    return [1] * pods


async def bind(
    plane: ControlPlane, kube: Kube, way: str, pods: int, stack: Stack | None
) -> Round:
    """Create the pods and wait until all are bound."""
    async with setup.namespace(kube) as name, watched(kube, name) as milestones:
        made = setup.pods(name, sizes_of(way, pods), gated=stack is not None)
        counted = await requests(kube)
        before = usage(processes_of(plane, stack))
        began_s = time.time()
        await setup.create(kube, made)
        await milestones.until(BOUND, pods, LIMIT_S)
        seconds = used(before, usage(before.pids))
        return Round(
            way=way,
            began_s=began_s,
            seen=milestones,
            used=seconds,
            requests=await requests(kube) - counted,
        )


async def measure(
    plane: ControlPlane, nodes: int, pods: int, rounds: int
) -> list[list[Round]]:
    """Go every way in every round, so that a busy moment hits all alike."""
    done: list[list[Round]] = []
    async with plane.client() as kube:
        await setup.create_fleet(kube, nodes)
        await bind(plane, kube, ALONE, WARM, None)
        for _ in range(rounds):
            made = [await bind(plane, kube, ALONE, pods, None)]
            async with setup.moorings(plane, kube, owned=True) as (stack, _bus):
                made += [
                    await bind(plane, kube, way, pods, stack)
                    for way in (LONE, EIGHTS, ONE)
                ]
            done.append(made)
    return done


def times_of(measured: Round, alone: Round) -> Row:
    """Give a row; `alone` is kube-scheduler in the same round."""
    seconds = {
        f"{name} s": measured.seen.last(name) - measured.began_s
        for name in (CREATED, CLAIMED, OPEN, BOUND)
    }
    return {
        "way": measured.way,
        "pods": measured.seen.count(BOUND),
        **seconds,
        "pods/s": measured.rate,
        "share %": 100 * measured.rate / alone.rate,
    }


def shares(rounds: Sequence[Sequence[Round]]) -> list[Row]:
    """Give the median share of each way."""
    rows: list[Row] = []
    for ways in zip(*rounds, strict=True):
        share = statistics.median(
            one.rate / round_[0].rate for one, round_ in zip(ways, rounds, strict=True)
        )
        rate = statistics.median(one.rate for one in ways)
        rows.append({"way": ways[0].way, "pods/s": rate, "share %": 100 * share})
    return rows


def main() -> None:
    """Print the tables."""
    arguments = parser(__doc__ or "")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--pods", type=int)
    arguments.add_argument("--rounds", type=int)
    options = arguments.parse_args()
    nodes, pods = NODES[options.size], options.pods or PODS[options.size]
    with setup.control_plane(Options()) as plane:
        rounds = asyncio.run(
            measure(plane, nodes, pods, options.rounds or ROUNDS[options.size])
        )
    every = [one for round_ in rounds for one in round_]
    tables: dict[str, list[Row]] = {
        "seconds": [times_of(one, round_[0]) for round_ in rounds for one in round_],
        "processor seconds": [{"way": one.way, **one.used} for one in every],
        "writes a pod": [
            {"way": one.way, **per_pod(one.requests, one.seen.count(BOUND))}
            for one in every
        ],
        "median": shares(rounds),
    }
    write("cluster_rate", options, print_tables(tables))


if __name__ == "__main__":
    main()
