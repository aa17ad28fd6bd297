"""Pods for parts of GPUs come and go one by one: how many are accepted.

20 GPUs on 5 nodes, split as NVIDIA's driver publishes MIG: 1g, 2g, 3g, 4g and 7g at
the places that they may have. Two ways to end: `filled`, where a random pod ends while
85 % of the compute slices are held, and one more after each pod that does not fit;
and `lifetimes`, where pods come and end at drawn times that would fill 85 % if all were
accepted. Beside Moorings, by the service's way of choosing, is first fit over GPUs and
places in order; beside `lifetimes` also what nobody exceeds who knows all that comes:
a linear program over the slices that are held at each time.

    python -m benchmarks.solver.partitions [--size full] [--json FILE]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct

from benchmarks.report import Row, arguments, report
from benchmarks.solver.full_path import ALL, Decider
from benchmarks.worlds.objects import (
    CLUSTER,
    announced,
    member_claim,
    observed_class,
    request,
    submission,
    text,
)
from benchmarks.worlds.ordinary.card_parts import (
    COMPUTE_SLICES,
    MEMORY_SLICES,
    PROFILES,
)
from contracts.device import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourcePool,
)
from contracts.gang import Member
from contracts.ids import DeviceName, DriverName, NodeName, PoolName, SolveID
from contracts.messages import ReleaseOutcome
from contracts.quantity import Quantity
from solver.cel.evaluator import SelectorEvaluator
from solver.engines.glop import Program
from solver.queueing.gang_queue import choose_batch
from solver.service.messages import make_decision, make_release
from solver.snapshot.snapshot import Snapshot, apply

DRIVER, CLASS = DriverName("gpu.example.com"), "mig.example.com"
NODES, CARDS, LOAD = 5, 4, 0.85
OFTEN = {"1g": 30, "2g": 25, "3g": 20, "4g": 15, "7g": 10}
COUNTS = {"small": (2, 1_000), "full": (10, 2_000)}
"""Seeds, and pods of each."""


class Arrival(Struct, frozen=True):
    """A pod that comes; when, and when it ends if it ends by itself."""

    profile: str
    at: float
    ends: float
    chance: float
    """Which pod ends where pods end as others come."""

    @property
    def slices(self) -> int:
        """Count its compute slices."""
        return PROFILES[self.profile].slices


class Policy(Struct, frozen=True):
    """Accepts single pods, and is told which ended."""

    place: Callable[[int, str], bool]
    end: Callable[[int], None]


def draw_arrivals(seed: int, pods: int) -> list[Arrival]:
    """Draw the pods that come; a mean lifetime is 1."""
    draw = random.Random(seed)
    mean = sum(PROFILES[name].slices * often for name, often in OFTEN.items()) / 100
    rate = LOAD * NODES * CARDS * COMPUTE_SLICES / mean
    arrivals, now = [], 0.0
    for _ in range(pods):
        now += draw.expovariate(rate)
        (profile,) = draw.choices(list(OFTEN), list(OFTEN.values()))
        ends = now + draw.expovariate(1)
        arrivals.append(Arrival(profile, now, ends, draw.random()))
    return arrivals


def play_filled(policy: Policy, arrivals: list[Arrival]) -> int:
    """Keep the GPUs as full as may be; count the pods that are accepted."""
    running, held, accepted = list[int](), 0, 0
    for number, arrival in enumerate(arrivals):
        chance = random.Random(number)
        while held >= LOAD * NODES * CARDS * COMPUTE_SLICES:
            held -= _end_one(policy, running, arrivals, chance.random())
        if policy.place(number, arrival.profile):
            running.append(number)
            held += arrival.slices
            accepted += 1
        elif running:
            held -= _end_one(policy, running, arrivals, arrival.chance)
    return accepted


def _end_one(
    policy: Policy, running: list[int], arrivals: list[Arrival], chance: float
) -> int:
    """End a pod; gives the slices that are free again."""
    ended = running.pop(int(chance * len(running)))
    policy.end(ended)
    return arrivals[ended].slices


def play_lifetimes(policy: Policy, arrivals: list[Arrival]) -> int:
    """End each pod at its time; count the pods that are accepted."""
    ends: list[tuple[float, int]] = []
    accepted = 0
    for number, arrival in enumerate(arrivals):
        while ends and ends[0][0] <= arrival.at:
            policy.end(heappop(ends)[1])
        if policy.place(number, arrival.profile):
            heappush(ends, (arrival.ends, number))
            accepted += 1
    return accepted


def bound_lifetimes(arrivals: list[Arrival]) -> float:
    """Bound what may be accepted by slices and memory of all GPUs together."""
    cards = NODES * CARDS
    limits = [(None, cards * COMPUTE_SLICES), (None, cards * MEMORY_SLICES)]
    program = Program([limit for _ in arrivals for limit in limits])
    for number, arrival in enumerate(arrivals):
        # A row each for slices and memory, at the time of every arrival.
        rows = [
            later
            for later in range(number, len(arrivals))
            if arrivals[later].at < arrival.ends
        ]
        compute = [(2 * row, arrival.slices) for row in rows]
        memory = [(2 * row + 1, PROFILES[arrival.profile].width) for row in rows]
        program.add(1, compute + memory, most=1)
    solved = program.solve()
    assert solved is not None
    return solved.worth


# --- policies ------------------------------------------------------------------------


def first_fit() -> Policy:
    """Take the first place on the first GPU."""
    memory = [0] * (NODES * CARDS)
    compute = [0] * (NODES * CARDS)
    where: dict[int, tuple[int, int, str]] = {}

    def place(number: int, name: str) -> bool:
        profile = PROFILES[name]
        for card in range(NODES * CARDS):
            for start in profile.starts:
                mask = (1 << profile.width) - 1 << start
                free = not memory[card] & mask
                if free and compute[card] + profile.slices <= COMPUTE_SLICES:
                    memory[card] |= mask
                    compute[card] += profile.slices
                    where[number] = (card, mask, name)
                    return True
        return False

    def end(number: int) -> None:
        card, mask, name = where.pop(number)
        memory[card] &= ~mask
        compute[card] -= PROFILES[name].slices

    return Policy(place, end)


def moorings(evaluator: SelectorEvaluator) -> Policy:
    """Let the solver decide each pod, as its service does."""
    decider = Decider(evaluator)
    snapshot = apply(Snapshot(), observed_class(CLASS, "'profile' in " + _ATTRIBUTES))
    for number in range(NODES):
        name = NodeName(f"node-{number}")
        snapshot = apply(snapshot, announced(name, _pool(name)))
    records = {}
    sequences = count(1)

    def place(number: int, name: str) -> bool:
        nonlocal snapshot
        part = request("part", CLASS, 1, f"{_ATTRIBUTES}.profile == '{name}'")
        pod = Member(name="w", count=1, claims=(member_claim("part", part),))
        message = submission(number + 1, pod)
        snapshot = apply(snapshot, message, sequence=next(sequences))
        (record,) = choose_batch(snapshot, ALL)
        (answer,) = decider.decide(snapshot).decision.gangs
        if answer.members:
            records[number] = record
            decided = make_decision(
                answer, record, cluster=CLUSTER, solve=SolveID("parts"), epoch=1
            )
        else:
            decided = make_release(
                record, ReleaseOutcome.CANCELLED, cluster=CLUSTER, epoch=1
            )
        assert decided is not None
        snapshot = apply(snapshot, decided, sequence=next(sequences))
        return bool(answer.members)

    def end(number: int) -> None:
        nonlocal snapshot
        former = records.pop(number)
        record = snapshot.gangs.get(former.key) or former
        message = make_release(
            record, ReleaseOutcome.COMPLETED, cluster=CLUSTER, epoch=1
        )
        snapshot = apply(snapshot, message, sequence=next(sequences))

    return Policy(place, end)


_ATTRIBUTES = f"device.attributes['{DRIVER}']"


def _pool(node: NodeName) -> ResourcePool:
    whole = {"compute": COMPUTE_SLICES, **{f"memory-{n}": 1 for n in range(8)}}
    return ResourcePool(
        driver=DRIVER,
        name=PoolName(node),
        generation=1,
        devices=tuple(part for card in range(CARDS) for part in _parts(card)),
        shared_counters=tuple(
            CounterSet(name=f"card-{card}", counters=_amounts(whole))
            for card in range(CARDS)
        ),
    )


def _parts(card: int) -> Iterator[Device]:
    for name, profile in PROFILES.items():
        for start in profile.starts:
            memory = range(start, start + profile.width)
            drawn = {"compute": profile.slices, **{f"memory-{n}": 1 for n in memory}}
            yield Device(
                name=DeviceName(f"gpu-{card}-{name}-{start}"),
                attributes={"profile": text(name)},
                consumes_counters=(
                    DeviceCounterConsumption(
                        counter_set=f"card-{card}", counters=_amounts(drawn)
                    ),
                ),
            )


def _amounts(amounts: dict[str, int]) -> dict[str, Counter]:
    return {
        name: Counter(value=Quantity.parse(str(amount)))
        for name, amount in amounts.items()
    }


def main() -> None:
    """Play all seeds both ways."""
    options = arguments(__doc__ or "")
    seeds, pods = COUNTS[options.size]
    rows: list[Row] = []
    with SelectorEvaluator() as evaluator:
        for way, play in (("filled", play_filled), ("lifetimes", play_lifetimes)):
            for seed in range(options.seed, options.seed + seeds):
                arrivals = draw_arrivals(seed, pods)
                ours = play(moorings(evaluator), arrivals)
                first = play(first_fit(), arrivals)
                most = bound_lifetimes(arrivals) if play is play_lifetimes else pods
                rows.append(
                    {
                        "ends": way,
                        "seed": seed,
                        "pods": pods,
                        "accepted": ours,
                        "first fit": first,
                        "more %": 100 * (ours / first - 1),
                        "of bound %": 100 * ours / most,
                    }
                )
    report("partitions", options, rows)


if __name__ == "__main__":
    main()
