"""Tiny Problems over every feature, by seed: random cases made into gangs.

The world (slices, classes, who has what) and the claims are those of the differential
cases, cut down; here several gangs of several pods want them, on two nodes, or on more
that have much of what the first has. Selectors are judged by the real engine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from contracts.claim import ResourceClaim
from contracts.codec import convert, to_builtins
from contracts.features import Features, features_of
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import GangUID, NodeName
from contracts.messages import ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.assemble import (
    SnapshotLookup,
    assemble,
    find_missing_verdicts,
    resolve_gangs,
)
from solver.problem.problem import ExpectedPart, Parameters, Problem
from solver.problem.resolve import ResolveOptions, resolve
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders.problems import CLUSTER
from tests.draw.drawn_nodes import asked_of_nodes, bound_pod, with_fit
from tests.oracles.differential import generate
from tests.oracles.differential.draw import Json
from tests.oracles.differential.lines import plan_line

DEVICES, COUNT = 4, 2
"""Devices of a slice, and of a request: more would take brute force too long."""


def drawn(
    seed: int,
    evaluator: SelectorEvaluator,
    *,
    nodes: int = 2,
    gangs: int = 3,
    names: Mapping[str, str] | None = None,
) -> tuple[Problem, list[str]]:
    """Make the Problem of a seed, and name the features in it; `gangs`: at most.

    `names` stand in place of others wherever these are the whole text.
    """
    draw, names = random.Random(seed), names or {}
    case = generate(seed)
    fit = draw.random() < 0.5
    tags = [*case["tags"], *(["node-fit"] if fit else [])]
    _cut(case, draw)
    others = [f"node-{number}" for number in range(2, nodes + 1)]
    for name in others[1:]:
        case["slices"].extend(list(_alike(case, name, draw)))
    line = json.loads(plan_line(case))
    snapshot = Snapshot()
    for number, raw in enumerate(line["objects"]):
        held = raw["metadata"]["name"] == "held-by-others"
        if raw["kind"] == "ResourceClaim" and not held:
            continue
        key = f"{raw['metadata']['name']}-{number}"
        if raw["kind"] == "Node" and fit:
            raw = with_fit(raw, draw)  # noqa: PLW2901  # the same object, and more
        if raw["kind"] in ("Node", "DeviceClass"):
            key = raw["metadata"]["name"]
        snapshot = _observed(snapshot, _renamed(raw, names), names.get(key, key))
    for name in others:
        other = {"metadata": {"name": name, "labels": {"zone": "east"}}}
        node = {"apiVersion": "v1", "kind": "Node", **other}
        node = _renamed(with_fit(node, draw) if fit else node, names)
        snapshot = _observed(snapshot, node, names.get(name, name))
    for number in range(draw.choice((0, 0, 1, 2)) if fit else 0):
        pod = _renamed(bound_pod(number, draw), names)
        snapshot = _observed(snapshot, pod, f"default/other-{number}")
    for number, gang in enumerate(_gangs(case, draw, gangs, fit=fit), start=1):
        uid = GangUID(gang.metadata.uid)
        submission = SubmitGang(cluster=CLUSTER, uid=uid, gang=_called(gang, names))
        snapshot = apply(snapshot, submission, sequence=number)
    release = random.Random(f"release {seed}").choice(("1.37", "1.38"))
    features = features_of(release, line["featureGates"])
    parameters = Parameters(version="drawn", features=features)
    later = random.Random(f"later {seed}")
    expected = _expected(case, snapshot, features, later, names)
    tags += ["expected"] if expected else []
    return _problem(snapshot, parameters, expected, evaluator), tags


def _expected(
    case: Json,
    snapshot: Snapshot,
    features: Features,
    draw: random.Random,
    names: Mapping[str, str],
) -> tuple[ExpectedPart, ...]:
    """Expect a few kinds of pods in a third of the cases: with one of its claims."""
    if draw.random() > 1 / 3:
        return ()
    how = ResolveOptions(lookup=SnapshotLookup(snapshot), features=features)
    found = []
    for gang in _gangs(case, draw, 3, fit=draw.random() < 0.3)[:2]:
        known = resolve(GangUID("expected"), _called(gang, names), how)
        members = known.members[:1] if not known.refused else ()
        for member in members:
            weight, size = draw.choice((1, 3)), draw.choice((250, 1000, 2000))
            found.append(ExpectedPart(member=member, weight=weight, size=size))
    return tuple(found)


def _observed(snapshot: Snapshot, raw: dict[str, Any], key: str) -> Snapshot:
    message = ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)
    return apply(snapshot, message)


def _called(gang: Gang, names: Mapping[str, str]) -> Gang:
    """Let a gang call nodes by other names."""
    return convert(_renamed(to_builtins(gang), names), Gang, "gang")


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Put other names in place of every text that is one."""
    match value:
        case str():
            return names.get(value, value)
        case dict():
            return {key: _renamed(item, names) for key, item in value.items()}
        case list() | tuple():
            return [_renamed(item, names) for item in value]
        case _:
            return value


def _problem(
    snapshot: Snapshot,
    parameters: Parameters,
    expected: tuple[ExpectedPart, ...],
    evaluator: SelectorEvaluator,
) -> Problem:
    batch = choose_batch(snapshot, BatchLimits())
    gangs = resolve_gangs(snapshot, batch, parameters.features)
    table = SelectorTable()
    while wanted := find_missing_verdicts(snapshot, gangs, table, expected):
        table = table.with_verdicts(wanted, evaluator.evaluate(wanted))
    return assemble(snapshot, gangs, table, parameters, expected)


def _cut(case: Json, draw: random.Random) -> None:
    """Leave little enough to try everything; some devices of it on the other node."""
    for item in case["slices"]:
        spec = item["spec"]
        if len(spec.get("devices") or ()) > DEVICES:
            del spec["devices"][DEVICES:]
        if spec.get("nodeName") == "node-1" and draw.random() < 0.2:
            spec["nodeName"] = "node-2"
    del case["slices"][4:]
    for claim in case["claims"]:
        for request in claim["spec"]["devices"].get("requests") or ():
            for asked in _asked(request):
                if asked.get("count", 0) > COUNT:
                    asked["count"] = draw.randint(1, COUNT)


def _alike(case: Json, node: str, draw: random.Random) -> Iterator[Json]:
    """Give a node what the first one has for itself, now and then a device less."""
    for item in case["slices"]:
        if item["spec"].get("nodeName") != "node-1":
            continue
        copy = json.loads(json.dumps(item))
        copy["metadata"]["name"] += f"-{node}"
        copy["spec"]["nodeName"] = node
        copy["spec"]["pool"]["name"] += f"-{node}"
        devices = copy["spec"].get("devices") or []
        if len(devices) > 1 and draw.random() < 0.3:
            devices.pop(draw.randrange(len(devices)))
        yield copy


def _asked(request: Json) -> list[Json]:
    exactly = request.get("exactly")
    return [exactly] if exactly else list(request.get("firstAvailable") or ())


def _gangs(case: Json, draw: random.Random, most: int, *, fit: bool) -> list[Gang]:
    """Make a few gangs; what their pods claim is drawn from the case's claims."""
    specs = [
        convert(claim, ResourceClaim, "claim").spec
        for claim in case["claims"]
        if len(claim["spec"]["devices"].get("requests") or ()) <= COUNT
    ]
    if not specs:
        return []
    gangs = []
    for number in range(1, draw.randint(1, most) + 1):
        members = tuple(
            Member(
                name=f"m{index}",
                count=draw.choice((1, 1, 2)),
                claims=tuple(
                    MemberClaim(name=f"c{i}", spec=draw.choice(specs))
                    for i in range(draw.choice((1, 1, 1, 2)))
                ),
                node=asked_of_nodes(draw) if fit else _pinned(draw),
            )
            for index in range(draw.choice((1, 1, 2)))
        )
        uid = f"00000000-0000-4000-8000-{number:012}"
        meta = ObjectMeta(name=f"g{number}", uid=uid)
        spec = GangSpec(members=members, priority=draw.choice((0, 0, 5)))
        gangs.append(Gang(metadata=meta, spec=spec))
    return gangs


def _pinned(draw: random.Random) -> MemberNode:
    return MemberNode(node_name=NodeName("node-2" if draw.random() < 0.05 else ""))
