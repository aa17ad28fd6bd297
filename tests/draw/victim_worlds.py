"""Small full fleets in which a gang waits for others to end, by seed."""

from __future__ import annotations

import random

from msgspec import Struct

from contracts.gang import Member
from contracts.lifecycle import GangRecord
from solver.timeline.candidates import Candidate
from solver.timeline.futures import without_gangs
from tests.builders import member, member_claim, request, topology_rule
from tests.builders.neighbours import apart, near, term
from tests.builders.timeline import World, worker
from tests.oracles.brute_victims import PlainFleet, Runs, Wants

NOW_S = 1000


class VictimWorld(Struct, frozen=True):
    """A world, who runs and who waits in it, and the same in plain numbers."""

    world: World
    candidates: tuple[Candidate, ...]
    waits: GangRecord
    fleet: PlainFleet
    runs: tuple[Runs, ...]
    wants: Wants


def draw_counted(seed: int) -> VictimWorld:
    """Draw a world in which devices, CPUs and racks alone decide."""
    draw = random.Random(seed)
    nodes, gpus, rack = (
        draw.randint(2, 6),
        draw.choice((2, 4, 8)),
        draw.choice((0, 2, 3)),
    )
    world = World(nodes, gpus, rack)
    cpus: dict[str, int] = {}
    for number in range(draw.randint(3, 9)):
        name, cpu = f"g{number}", draw.choice((0, 8, 24, 40))
        pods, each = draw.randint(1, 3), draw.randint(1, gpus)
        if _start(world, name, worker(pods, each, cpu), priority=_draw_priority(draw)):
            cpus[name] = cpu
            if draw.random() < 0.4:
                world.run(name, cpu)
    if draw.random() < 0.3 and len(cpus) > 2:
        for name in draw.sample(sorted(cpus), draw.randint(1, 2)):
            world.snapshot = without_gangs(world.snapshot, [world[name]])
            del cpus[name]
    candidates = tuple(_draw_candidate(draw, world[name]) for name in cpus)
    in_rack = bool(rack) and draw.random() < 0.6
    priority = draw.choice((10, 15, 25, 40))
    members = tuple(
        (draw.randint(1, 4), draw.randint(1, gpus), draw.choice((0, 8, 30)))
        for _ in range(draw.choice((1, 1, 2)))
    )
    waits = world.submit_members(
        "waits",
        *(worker(*each, name=f"m{n}") for n, each in enumerate(members)),
        priority=priority,
        topology=(topology_rule(),) if in_rack else (),
    )
    racks = {f"n-{n}": f"r-{n // rack}" if rack else "" for n in range(nodes)}
    fleet = PlainFleet({name: (gpus, 64, of) for name, of in racks.items()})
    runs = tuple(_read(each, cpus[each.record.name]) for each in candidates)
    wants = Wants(priority, members, in_rack)
    return VictimWorld(world, candidates, waits, fleet, runs, wants)


def draw_ruled(seed: int) -> VictimWorld:
    """Draw a world in which rules decide that no counting sees."""
    draw = random.Random(seed)
    nodes, gpus = draw.randint(2, 5), draw.choice((2, 4))
    world = World(nodes, gpus, rack=2)
    names = []
    for number in range(draw.randint(3, 7)):
        name = f"g{number}"
        pods = _draw_member(draw, name, draw.randint(1, 2), draw.randint(1, gpus))
        if _start(world, name, pods, priority=_draw_priority(draw)):
            names.append(name)
    candidates = tuple(_draw_candidate(draw, world[name]) for name in names)
    pods = _draw_member(draw, "waits", draw.randint(1, 4), draw.randint(1, gpus))
    rules = (
        (),
        (topology_rule(group_size=2),),
        (topology_rule(max_per_domain=draw.randint(1, 2)),),
        (topology_rule(), topology_rule("kubernetes.io/hostname", max_per_domain=1)),
    )
    waits = world.submit_members(
        "waits", pods, priority=draw.choice((15, 40)), topology=draw.choice(rules)
    )
    return VictimWorld(world, candidates, waits, PlainFleet({}), (), Wants(0, ()))


def draw_shared(seed: int) -> VictimWorld:
    """Draw a world in which gangs share devices."""
    draw = random.Random(seed)
    world = World(
        draw.randint(1, 3),
        draw.randint(1, 2),
        capacity={"m": 10},
        allow_multiple_allocations=True,
    )
    names = [
        f"g{number}"
        for number in range(draw.randint(2, 6))
        if _start(world, f"g{number}", _draw_shares(draw), _draw_priority(draw))
    ]
    candidates = tuple(_draw_candidate(draw, world[name]) for name in names)
    waits = world.submit_members("waits", _draw_shares(draw), priority=25)
    return VictimWorld(world, candidates, waits, PlainFleet({}), (), Wants(0, ()))


def _draw_shares(draw: random.Random) -> Member:
    asked = request(capacity={"m": draw.randint(2, 9)})
    return member(member_claim(asked), count=draw.randint(1, 3))


def _draw_priority(draw: random.Random) -> int:
    return draw.randint(0, 3) * 10


def _draw_member(draw: random.Random, app: str, count: int, gpus: int) -> Member:
    """Draw pods that may keep others away, or want others near."""
    labels, rules = {"app": draw.choice("ab")}, {}
    if draw.random() < 0.4:
        rules = draw.choice((near, apart))(term(app=draw.choice("ab")))
    every = draw.random() < 0.2
    asked = request(mode="All") if every else request(count=gpus)
    return member(
        member_claim(asked), name=app, count=count, labels=labels, affinity=rules
    )


def _start(world: World, name: str, pods: Member, priority: int) -> bool:
    """Start a gang if it has a place."""
    before = world.snapshot
    try:
        world.start_members(name, pods, priority=priority)
    except AssertionError:
        world.snapshot = before
        return False
    return True


def _draw_candidate(draw: random.Random, record: GangRecord) -> Candidate:
    started_s = draw.choice((0, 100, 500, 900, draw.randint(0, 999)))
    saved_s = draw.choice((None, None, started_s + 50))
    return Candidate(record=record, started_s=started_s, checkpointed_s=saved_s)


def _read(candidate: Candidate, cpu: int) -> Runs:
    """Write a gang that runs down in plain numbers."""
    record = candidate.record
    assert record.submission is not None
    assert record.placed is not None
    saved_s = candidate.checkpointed_s
    return Runs(
        name=record.name,
        priority=record.submission.gang.spec.priority,
        started_s=int(candidate.started_s),
        checkpointed_s=None if saved_s is None else int(saved_s),
        pods=tuple(
            (pod.node, sum(len(c.allocation.devices.results) for c in pod.claims), cpu)
            for pod in record.placed.members
        ),
    )
