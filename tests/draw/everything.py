"""Batches over all features at once, by seed: tiny ones and ones of dozens of nodes.

What `crowds`, `gang_worlds` and `neighbours` draw apart is here in one batch, since an
engine that is right about each may still be wrong about two of them together: racks and
groups, shares of devices, parts that draw from counters, gangs that are in with fewer
pods, pods that are near, apart or spread, weights, priorities, alternatives, values
that match or differ, CPU and memory of nodes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs

from contracts.claim import DeviceRequest
from contracts.device import Device, ResourcePool
from contracts.features import Features
from contracts.gang import Gang, Member, MemberClaim
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import DeviceID
from contracts.pod_terms import TopologySpreadConstraint
from contracts.workload import Node
from solver.problem.problem import ExpectedPart, Problem
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    DRIVER,
    constraint,
    counter_set,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)
from tests.builders.values import Amount, Value
from tests.draw.crowds import NUMA, ROOT, UID, of_type
from tests.draw.neighbours import (
    HOST,
    ZONE,
    draw_labels,
    draw_running,
    draw_spread,
    draw_terms,
)

ASKED: tuple[dict[str, Amount], ...] = (
    {},
    {"cpu": "1500m"},
    {"cpu": 3, "memory": "7Gi"},
    {"memory": "12Gi"},
)
"""Of a node by a pod."""
RACK = "example.com/rack"
RAIL = f"{DRIVER}/rail"
FEATURES = (
    "affinity",
    "alternatives",
    "counters",
    "distinct",
    "distinct gang",
    "elastic",
    "extra domain",
    "groups",
    "label domain",
    "match",
    "match gang",
    "node resources",
    "preferred",
    "priority",
    "running",
    "shares",
    "spread",
    "taken",
    "two members",
    "weight",
)
"""What must occur over many seeds."""
RARE = ("admin", "all", "compatibility groups", "expected")
"""What occurs as well at a scale with `rare`."""


class Scale(Struct, frozen=True, kw_only=True):
    """How large a batch is; pairs are the least and the most."""

    nodes: tuple[int, int]
    rack: int
    """Nodes of a rack."""
    gangs: tuple[int, int]
    pods: tuple[int, ...]
    """Of a member: drawn from these."""
    cards: int
    """GPUs of a node, or cards that can be split, at most."""
    running: int
    """Pods that run already, at most."""
    rare: bool = False
    """True if what is `RARE` is drawn, too; the rest stays as it is without."""


TINY = Scale(
    nodes=(2, 4), rack=2, gangs=(2, 3), pods=(1, 1, 1, 2, 2, 3), cards=3, running=2
)
TINY_WITH_RARE = structs.replace(TINY, rare=True)
MIDDLE = Scale(
    nodes=(20, 60),
    rack=6,
    gangs=(30, 80),
    pods=(1, 1, 2, 2, 3, 4, 6, 9),
    cards=4,
    running=12,
)


def draw_everything(seed: int, scale: Scale) -> tuple[Problem, Counter[str]]:
    """Draw a batch; says what occurs in it."""
    usual, rare = (random.Random(f"{name} {seed}") for name in ("everything", "rare"))
    drawing = _Drawing(usual, rare, scale)
    return drawing.problem(), drawing.seen


class _Drawing:
    """One batch while it is drawn."""

    def __init__(self, draw: random.Random, rare: random.Random, scale: Scale) -> None:
        self._draw, self._rare = draw, rare
        self._scale = scale
        self.seen: Counter[str] = Counter()
        self._types: set[str] = set()
        """Of the devices that were drawn: most pods ask for what there is."""

    def problem(self) -> Problem:
        draw, scale = self._draw, self._scale
        nodes = [self._node(n) for n in range(draw.randint(*scale.nodes))]
        pools = {str(each.name): [self._pool(each)] for each in nodes}
        taken = [
            DeviceID(own.driver, own.name, item.name)
            for (own,) in pools.values()
            for item in own.devices
            if item.allow_multiple_allocations is None and draw.random() < 0.08
        ]
        self.seen["taken"] += bool(taken)
        devices = [item for (own,) in pools.values() for item in own.devices]
        self._types = {str(item.attributes["type"].string_value) for item in devices}
        gangs = [self._gang(n) for n in range(draw.randint(*scale.gangs))]
        names = [str(each.name) for each in nodes]
        running = [
            draw_running(number, draw, names)
            for number in range(draw.randint(0, scale.running))
        ]
        self.seen["running"] += bool(running)
        snapshot = snapshot_of(pools, gangs, taken=taken)
        snapshot = observe_core(snapshot, *nodes, *running)
        features = Features(compatibility_groups=scale.rare)
        parameters = structs.replace(PARAMETERS, features=features)
        return problem_of(snapshot, parameters, tuple(self._expected(snapshot, gangs)))

    def _has(self, rare: str, chance: float) -> bool:
        """Decide if something rare occurs here."""
        found = self._scale.rare and self._rare.random() < chance
        self.seen[rare] += found
        return found

    def _expected(
        self, snapshot: Snapshot, gangs: list[Gang]
    ) -> Iterator[ExpectedPart]:
        """Expect pods like some that wait, without what they ask of others."""
        draw = self._rare
        for asked in (draw.choice(gangs) for _ in range(2)):
            if self._has("expected", 0.3):
                first = asked.spec.members[0]
                alone = member(*first.claims, count=1, name=first.name)
                weight, size = draw.choice((1, 3)), draw.choice((500, 1000, 2000))
                yield from expected_of(snapshot, alone, weight=weight, size=size)

    # --- nodes and devices ---------------------------------------------------------

    def _node(self, number: int) -> Node:
        draw = self._draw
        rack = number // self._scale.rack
        labels = {RACK: f"r{rack}", ZONE: "ab"[rack % 2]}
        if draw.random() < 0.05:
            del labels[draw.choice((RACK, ZONE))]
        amounts: dict[str, Amount] = {
            "cpu": draw.choice((4, 8, 16)),
            "memory": draw.choice(("16Gi", "32Gi")),
            "pods": draw.choice((2, 3, 9)),
        }
        return node(f"n{number:02}", labels=labels, allocatable=amounts)

    def _pool(self, own: Node) -> ResourcePool:
        draw, cards = self._draw, self._draw.randint(1, self._scale.cards)
        match draw.randrange(4):
            case 0:
                self.seen["counters"] += 1
                sets = [counter_set(f"card-{n}", eighths=8) for n in range(cards)]
                parts = [part for n in range(cards) for part in self._parts(n)]
                return pool(*parts, name=own.name, counters=sets)
            case 1:
                self.seen["shares"] += 1
                tree = list(self._tree(max(1, cards - 1)))
                return pool(*tree, self._shared(), name=own.name)
            case _:
                return pool(*self._tree(cards), name=own.name)

    def _tree(self, gpus: int) -> Iterator[Device]:
        for number in range(gpus):
            place: dict[str, Value] = {
                ROOT: f"pci{number // 2}",
                "numa": number // 4,
                "rail": number % 2 if self._draw.random() < 0.9 else 2,
            }
            yield device(f"gpu-{number}", attributes={"type": "gpu", **place})
            if number % 2:
                yield device(f"nic-{number // 2}", attributes={"type": "nic", **place})

    def _shared(self) -> Device:
        return device(
            "vf-0",
            attributes={"type": "vf", "rail": 0},
            capacity={"gbps": 4},
            allow_multiple_allocations=True,
        )

    def _parts(self, card: int) -> Iterator[Device]:
        for profile, count, eighths in (("gpu", 1, 8), ("half", 2, 4)):
            for number in range(count):
                part = device(
                    f"card-{card}-{profile}-{number}",
                    attributes={"type": profile, "rail": number, ROOT: f"pci{card}"},
                    consumes={f"card-{card}": {"eighths": eighths}},
                )
                if self._has("compatibility groups", 0.3):
                    (uses,) = part.consumes_counters
                    groups = self._rare.choice((("a",), ("b",), ("a", "b")))
                    uses = structs.replace(uses, compatibility_groups=groups)
                    part = structs.replace(part, consumes_counters=(uses,))
                yield part

    # --- gangs ---------------------------------------------------------------------

    def _gang(self, number: int) -> Gang:
        draw = self._draw
        members = [self._member(0)]
        if draw.random() < 0.3:
            self.seen["two members"] += 1
            members.append(self._member(1))
        has_rules = draw.random() < 0.5
        priority = draw.choice((0, 0, 0, 5))
        self.seen["priority"] += priority > 0
        weight = draw.randint(1, 12) if draw.random() < 0.4 else None
        self.seen["weight"] += weight is not None
        return gang(
            *members,
            name=f"g{number}",
            uid=UID.format(number),
            priority=priority,
            weight=weight,
            constraints=tuple(self._constraints()) if has_rules else (),
            topology=tuple(self._topology()) if has_rules else (),
        )

    def _member(self, number: int) -> Member:
        draw = self._draw
        claims = [self._claim("c")]
        if draw.random() < 0.15:
            claims.append(self._claim("e"))
        resources = draw.choice(ASKED)
        self.seen["node resources"] += bool(resources)
        count = draw.choice(self._scale.pods)
        fewest = draw.randint(1, count) if draw.random() < 0.3 else count
        self.seen["elastic"] += fewest < count
        return member(
            *claims,
            name=f"m{number}",
            count=count,
            min_count=fewest if fewest < count else None,
            resources=resources,
            labels=draw_labels(draw),
            **self._beside_others(),
        )

    def _beside_others(self) -> dict[str, Any]:
        """Let a pod ask for others near, apart or evenly spread, now and then."""
        draw = self._draw
        affinity: dict[str, Any] = {}
        spread: tuple[TopologySpreadConstraint, ...] = ()
        match draw.randrange(12):
            case 0:
                affinity = draw_terms(draw, "podAffinity", 1.0)
            case 1:
                affinity = draw_terms(draw, "podAntiAffinity", 1.0)
            case 2:
                spread = (draw_spread(draw),)
            case _:
                return {}
        self.seen["affinity"] += bool(affinity)
        self.seen["spread"] += bool(spread)
        return {"affinity": affinity, "topology_spread_constraints": spread}

    def _claim(self, name: str) -> MemberClaim:
        draw = self._draw
        select = of_type(self._rare.choice(("gpu", "half", "vf")))
        if self._has("all", 0.06):
            return member_claim(request(mode="All", select=select), name=name)
        if self._has("admin", 0.06):
            watch = request(mode="All", select=select, admin_access=True)
            return member_claim(watch, name=name)
        match draw.randrange(9):
            case 0 if "nic" in self._types:
                self.seen["match"] += 1
                asked = [_of("gpu", 1), _of("nic", 1)]
                return member_claim(*asked, name=name, constraints=[constraint(ROOT)])
            case 1:
                self.seen["match"] += 1
                two = [_of("gpu", 2)]
                return member_claim(*two, name=name, constraints=[constraint(NUMA)])
            case 2:
                self.seen["distinct"] += 1
                two = [_of("gpu", 2)]
                apart = [constraint(distinct=RAIL)]
                return member_claim(*two, name=name, constraints=apart)
            case 3 if "half" in self._types:
                return member_claim(_of("half", 1), name=name)
            case 4 if "vf" in self._types:
                gbps = draw.choice((1, 2, 3))
                share = request("vf", select=of_type("vf"), capacity={"gbps": gbps})
                return member_claim(share, name=name)
            case 5:
                self.seen["alternatives"] += 1
                first = sub_request("a", select=of_type("gpu"), count=2)
                then = sub_request("b", select=of_type("half"))
                listed = request("r", first_available=[first, then])
                return member_claim(listed, name=name)
            case _:
                return member_claim(_of("gpu", draw.choice((1, 1, 2))), name=name)

    def _constraints(self) -> Iterator[GangConstraint]:
        """Let devices of several claims have one rail, or all different ones."""
        draw = self._draw
        if draw.random() < 0.6:
            return
        scope = draw.choice(("Pod", "Member", "Gang"))
        distinct = draw.random() < 0.3
        self.seen["distinct gang" if distinct else "match gang"] += 1
        yield gang_constraint(
            None if distinct else RAIL, distinct=RAIL if distinct else None, scope=scope
        )

    def _topology(self) -> Iterator[GangTopology]:
        """Keep pods in one domain, in groups, or not too many in one."""
        draw = self._draw
        match draw.randrange(6):
            case 0:
                self.seen["groups"] += 1
                yield topology_rule(RACK, group_size=draw.choice((1, 2, 2, 4)))
            case 1:
                self.seen["extra domain"] += 1
                yield topology_rule(
                    draw.choice((HOST, RACK)), max_per_domain=draw.choice((1, 2))
                )
            case 2:
                self.seen["preferred"] += 1
                yield topology_rule(draw.choice((RACK, HOST)), mode="Preferred")
            case 3 | 4:
                self.seen["label domain"] += 1
                yield topology_rule(draw.choice((RACK, RACK, ZONE, HOST)))
            case _:
                return


def _of(kind: str, count: int) -> DeviceRequest:
    return request(kind, count=count, select=of_type(kind))
