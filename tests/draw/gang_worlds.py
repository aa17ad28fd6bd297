"""Tiny worlds of gangs with rules across their pods, by seed.

Two to four nodes in racks and zones that do not nest, devices on few rails, some with
lists, some that may be shared or that all nodes see; gangs with constraints of every
scope and topology of every sort, now and then beside a gang that asks nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from contracts.claim import DerivedAttribute, DeviceRequest
from contracts.device import Device, NodeSelector, ResourcePool, ResourceSlice
from contracts.features import Features
from contracts.gang import Gang, Member, MemberClaim
from contracts.gang_rules import EVEN, GangConstraint, GangTopology
from contracts.ids import DeviceID, NodeName
from contracts.workload import Node
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.growth.standing import HeldPart, StandingPart
from solver.problem.problem import ExpectedPart, Parameters, Problem
from tests.builders import (
    DRIVER,
    constraint,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    node_selector,
    pool,
    request,
    resource_slice,
    sub_request,
    topology_rule,
)
from tests.builders.problems import (
    expected_of,
    observe,
    observe_core,
    problem_of,
    snapshot_of,
)

RACK, ZONE = "example.com/rack", "topology.kubernetes.io/zone"
RAIL, POWER = f"{DRIVER}/rail", "example.com/power"
SIDE = "example.com/side"
UID = "00000000-0000-4000-8000-{:012}"
FEATURES = Features(list_type_attributes=True, derived_attributes=True)
PARAMETERS = Parameters(version="test", features=FEATURES)


def gang_world(seed: int) -> tuple[Problem, Counter[str]]:
    """Draw a world and ask for everything that waits in it; says what occurs."""
    return _World(random.Random(seed)).problem()  # drawn by seed


def fabric_of(*content: Device, **reach: Any) -> ResourceSlice:
    """Make a pool that is not of one node."""
    return resource_slice(*content, name="fabric", pool="fabric", **reach)


class _World:
    """One world while it is drawn."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._seen: Counter[str] = Counter()

    def problem(self) -> tuple[Problem, Counter[str]]:
        draw = self._draw
        nodes = [self._node(n) for n in range(draw.choice((2, 2, 3, 3, 4)))]
        pools = {
            str(item.name): (
                pool(*self._devices(draw.choice((1, 1, 2))), name=item.name),
            )
            for item in nodes
        }
        gangs = [self._gang(number) for number in range(draw.choice((1, 1, 1, 2)))]
        gangs = [self._elastic(each) for each in gangs]
        names = [
            DeviceID(each.driver, each.name, d.name)
            for listed in pools.values()
            for each in listed
            for d in each.devices
        ]
        taken = draw.sample(names, 1) if draw.random() < 0.15 else []
        snapshot = snapshot_of(pools, gangs, taken=taken)
        snapshot = observe_core(snapshot, *nodes)
        if draw.random() < (0.7 if self._seen["shared claim"] else 0.15):
            fabric = self._fabric()
            snapshot = observe(snapshot, fabric.metadata.name, fabric)
        expected: tuple[ExpectedPart, ...] = ()
        if draw.random() < 0.1:
            self._seen["expected"] += 1
            expected = expected_of(snapshot, member(count=1))
        problem = problem_of(snapshot, PARAMETERS, expected)
        standing = [self._beside(gang, pools) for gang in problem.gangs]
        return problem.with_gangs(tuple(standing)), self._seen

    # --- nodes and devices ---------------------------------------------------------

    def _node(self, number: int) -> Node:
        draw = self._draw
        labels = {RACK: draw.choice("aab"), ZONE: draw.choice(("x", "x", "y", ""))}
        if draw.random() < 0.1:
            self._seen["no label"] += 1
            labels.pop(draw.choice((RACK, ZONE)))
        pods = draw.choice((1, 2, 9))
        return node(f"n{number}", labels=labels, allocatable={"pods": pods})

    def _devices(self, count: int, prefix: str = "d") -> list[Device]:
        return [self._device(f"{prefix}{number}") for number in range(count)]

    def _device(self, name: str) -> Device:
        draw = self._draw
        attributes: dict[str, object] = {"model": draw.choice(("big", "big", "small"))}
        if draw.random() < 0.92:
            attributes["rail"] = draw.choice((0, 0, 1, "0"))
        if draw.random() < 0.92:
            attributes[POWER] = draw.choice(("p", "q", "r"))
        if draw.random() < 0.15:
            self._seen["list"] += 1
            attributes[POWER] = draw.choice((["p", "q"], ["q", "r"], ["p"]))
        if draw.random() < 0.15:
            self._seen["shareable"] += 1
            return device(
                name,
                attributes=attributes,  # type: ignore[arg-type]  # drawn values
                capacity={"memory": 2},
                allow_multiple_allocations=True,
            )
        return device(name, attributes=attributes)  # type: ignore[arg-type]  # drawn values

    def _fabric(self) -> ResourceSlice:
        """Draw a pool that several nodes see: all, those of a rack, or each device."""
        draw, dice = self._draw, self._draw.random()
        content = self._devices(draw.choice((1, 2)), "f")
        if dice < 0.4:
            self._seen["seen by all"] += 1
            return fabric_of(*content, all_nodes=True)
        rack, zone = (node_selector(**{RACK: "a"}), node_selector(**{ZONE: "x"}))
        if dice < 0.7:
            self._seen["seen by rack"] += 1
            return fabric_of(*content, node_selector=rack)
        self._seen["seen by device"] += 1
        terms = (*rack.node_selector_terms, *zone.node_selector_terms)
        reaches: tuple[dict[str, Any], ...] = (
            {"all_nodes": True},
            {"node_selector": rack},
            {"node_selector": NodeSelector(node_selector_terms=terms)},
            {"all_nodes": True, "binds_to_node": True},
        )
        content = [structs.replace(d, **draw.choice(reaches)) for d in content]
        return fabric_of(*content, per_device_node_selection=True)

    # --- gangs ---------------------------------------------------------------------

    def _gang(self, number: int) -> Gang:
        draw = self._draw
        members = [self._member(0, draw.choice((1, 2, 2, 3, 3, 4)))]
        if draw.random() < 0.3:
            members.append(self._member(1, draw.choice((1, 1, 2))))
        if draw.random() < 0.2:
            members = self._share(number, members)
        is_plain = number > 0 and draw.random() < 0.5
        self._seen["plain"] += is_plain
        constraints = [] if is_plain else self._constraints(members)
        topology = [] if is_plain else self._topology(members)
        return gang(
            *members,
            name=f"g{number}",
            uid=UID.format(number),
            priority=draw.choice((0, 0, 5)),
            constraints=tuple(constraints),
            topology=tuple(topology),
        )

    def _elastic(self, drawn: Gang) -> Gang:
        """Let some gangs be in with fewer pods than they ask for."""
        draw = self._draw
        shares = any(c.claim_name for m in drawn.spec.members for c in m.claims)
        is_even = any(rule.is_even for rule in drawn.spec.topology)
        if shares or draw.random() < 0.6 or is_even:
            return drawn
        members = [
            structs.replace(each, min_count=draw.randint(0, each.count))
            for each in drawn.spec.members
        ]
        if not any(each.min_count for each in members):
            members[0] = structs.replace(members[0], min_count=1)
        self._seen["elastic"] += any(
            (each.min_count or 0) < each.count for each in members
        )
        return structs.replace(
            drawn, spec=structs.replace(drawn.spec, members=tuple(members))
        )

    def _beside(
        self, drawn: GangPart, pools: Mapping[str, tuple[ResourcePool, ...]]
    ) -> GangPart:
        """Let some gangs have pods already; some of these ask for more pods alone."""
        draw = self._draw
        shares = any(c.claim_name for m in drawn.members for c in m.claims)
        rules = drawn.topology or any(c.scope != "Pod" for c in drawn.constraints)
        is_even = any(rule.is_even for rule in drawn.topology)
        if shares or drawn.refused or not rules or draw.random() < 0.6 or is_even:
            return drawn
        standing, members = list[StandingPart](), []
        for each in drawn.members:
            count = draw.choice((0, 1, 1, 2))
            standing += [self._stand(each, n, pools) for n in range(count)]
            members.append(structs.replace(each, first=count))
        self._seen["standing"] += 1
        if draw.random() < 0.4:
            self._seen["grows"] += 1
            members = [structs.replace(each, min_count=0) for each in members]
            drawn = structs.replace(drawn, weight=0)
        return structs.replace(drawn, members=tuple(members), standing=tuple(standing))

    def _stand(
        self,
        part: MemberPart,
        index: int,
        pools: Mapping[str, tuple[ResourcePool, ...]],
    ) -> StandingPart:
        """Draw a pod with some device of its node for each request."""
        name = self._draw.choice(sorted(pools))
        (own,) = pools[name]
        held = tuple(
            HeldPart(
                claim=claim.name,
                request=asked.result_name(0),
                device=DeviceID(
                    own.driver, own.name, self._draw.choice(own.devices).name
                ),
                derived_attributes=asked.alternatives[0].derived_attributes,
            )
            for claim in part.claims
            for asked in claim.requests
        )
        return StandingPart(
            member=part.name, index=index, node=NodeName(name), devices=held
        )

    def _share(self, gang: int, members: list[Member]) -> list[Member]:
        """Let a claim of the first member be one of all its pods, or of others too."""
        first, *others = members
        chosen = self._draw.choice(first.claims)
        shared = structs.replace(chosen, claim_name=f"shared-{gang}")
        self._seen["shared claim"] += 1

        def own(each: Member, *more: MemberClaim) -> Member:
            kept = (c for c in each.claims if c.name != chosen.name)
            return structs.replace(each, claims=(*more, *kept))

        if others and self._draw.random() < 0.5:
            self._seen["shared by members"] += 1
            again = structs.replace(shared, name="other")
            others = [structs.replace(o, claims=(*o.claims, again)) for o in others]
        return [own(first, shared), *others]

    def _member(self, number: int, count: int) -> Member:
        draw = self._draw
        claims = []
        for name in ("c", "e")[: 1 + (draw.random() < 0.25 and count < 3)]:
            asked = self._request()
            inside = [constraint(POWER)] if draw.random() < 0.08 else []
            if asked.exactly is not None and asked.exactly.derived_attributes:
                inside = [constraint(SIDE)]
            claims.append(member_claim(asked, name=name, constraints=inside))
        self._seen["two claims"] += len(claims) > 1
        return member(*claims, name=f"m{number}", count=count)

    def _request(self) -> DeviceRequest:
        draw, dice = self._draw, self._draw.random()
        big = (f'device.attributes["{DRIVER}"].model == "big"',)
        if dice < 0.12:
            self._seen["alternatives"] += 1
            return request(
                "r",
                first_available=[
                    sub_request("one", select=big),
                    sub_request("two", count=draw.choice((1, 2))),
                ],
            )
        if dice < 0.17:
            self._seen["all"] += 1
            return request("r", mode="All")
        if dice < 0.22:
            self._seen["admin"] += 1
            return request("r", admin_access=True)
        if dice < 0.3:
            self._seen["derived"] += 1
            name, text = SIDE, f'device.attributes["{DRIVER}"].model'
            derived = DerivedAttribute(name=name, expression=text)
            return request("r", derived_attributes=(derived,))
        return request("r", count=draw.choice((1, 1, 1, 1, 2)))

    def _constraints(self, members: list[Member]) -> list[GangConstraint]:
        found = []
        for _ in range(self._draw.choice((0, 0, 1, 1, 2))):
            scope = self._draw.choice(("Pod", "Member", "Gang"))
            attribute = self._draw.choice((RAIL, RAIL, POWER, SIDE))
            distinct = self._draw.random() < 0.35
            self._seen[f"{'distinct' if distinct else 'match'} {scope}"] += 1
            found.append(
                gang_constraint(
                    None if distinct else attribute,
                    *self._paths(members),
                    distinct=attribute if distinct else None,
                    scope=scope,
                )
            )
        return found

    def _paths(self, members: list[Member]) -> list[str]:
        if self._draw.random() < 0.6:
            return []
        one = self._draw.choice(members)
        path = [one.name, self._draw.choice(one.claims).name, "r"]
        claims = {claim.name: claim for claim in one.claims}
        spec = claims[path[1]].spec
        if spec is not None and spec.devices.requests[0].first_available:
            path.append(self._draw.choice(("one", "two")))
        kept = self._draw.randrange(1, len(path) + 1)
        self._seen["path"] += 1
        return ["/".join(path[:kept])]

    def _topology(self, members: list[Member]) -> list[GangTopology]:
        found, draw = [], self._draw
        for _ in range(draw.choice((0, 1, 1, 1, 2))):
            key = draw.choice((RACK, RACK, ZONE, f"attribute:{RAIL}"))
            if draw.random() < 0.15:
                key = f"attribute:{POWER}"
            mode = draw.choice(("Required", "Required", "Preferred"))
            group = draw.choice((None, None, None, 1, 2, 2, 3))
            is_even = group == 3 and mode == "Required"
            self._seen["even"] += is_even
            most = draw.choice((None, None, None, 1, 2))
            named = [draw.choice(members).name] if draw.random() < 0.3 else []
            sort = "attribute" if key.startswith("attribute") else "label"
            self._seen[f"{mode} {sort}"] += 1
            self._seen["groups"] += group is not None
            self._seen["spread"] += most is not None
            found.append(
                topology_rule(
                    key,
                    *named,
                    mode=mode,
                    group_size=EVEN if is_even else group,
                    max_per_domain=most,
                )
            )
        return found
