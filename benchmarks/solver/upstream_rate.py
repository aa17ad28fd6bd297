"""Claims a second: Moorings, and upstream's Go allocator on the same objects.

    python -m benchmarks.solver.upstream_rate [--nodes N] [--size full] [--json FILE]

500 nodes x 10 devices, 2,500 claims in three scenarios (`rate_cases.py`). Upstream
allocates them one after the other on one thread: as kube-scheduler drives it, and in
plain first fit; reading the case is not timed, and its seconds are those of its CPU,
so other load on the machine does not slow it. Ours is one batch from Snapshot to judged
Decision, selectors unknown, by the clock. Without Go upstream's columns are empty.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.report import Row, parser, report
from benchmarks.solver.full_path import Decided, Decider
from benchmarks.worlds.objects import CLUSTER
from benchmarks.worlds.rate_cases import SCENARIOS, Json, case
from contracts.claim import ResourceClaim
from contracts.gang import Gang, GangSpec, Member, MemberClaim
from contracts.ids import GangUID
from contracts.kubernetes.decode import decode_object
from contracts.messages import ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta
from solver.cel.evaluator import SelectorEvaluator
from solver.snapshot.snapshot import Snapshot, apply
from tests.oracles.upstream_oracle import built

MODES = {"scheduler": "as kube-scheduler", "firstfit": "first fit"}
NODES = {"small": 100, "full": 500}
V1 = "resource.k8s.io/v1"


def upstream(program: Path, data: bytes, mode: str) -> Json:
    """Run upstream's allocator over a case."""
    command = [str(program), "-mode", mode]
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    answer: Json = json.loads(done.stdout)
    return answer


def snapshot_of(case_objects: Json) -> Snapshot:
    """Believe in the objects of a case; each claim is a gang of one pod."""
    snapshot = Snapshot()
    kinds = (("Node", "nodes"), ("DeviceClass", "classes"), ("ResourceSlice", "slices"))
    for kind, field in kinds:
        for resource in case_objects[field]:
            version = "v1" if kind == "Node" else V1
            raw = {"apiVersion": version, "kind": kind, **resource}
            key = resource["metadata"]["name"]
            message = ObjectObserved(cluster=CLUSTER, kind=kind, key=key, object=raw)
            snapshot = apply(snapshot, message)
    for age, resource in enumerate(case_objects["claims"], start=1):
        snapshot = apply(snapshot, _submission(resource, age), sequence=age)
    return snapshot


def _submission(raw: Json, age: int) -> SubmitGang:
    claim = decode_object({"apiVersion": V1, "kind": "ResourceClaim", **raw}).value
    assert isinstance(claim, ResourceClaim)
    pod = Member(name="pod", claims=(MemberClaim(name="claim", spec=claim.spec),))
    meta = ObjectMeta(name=claim.metadata.name, namespace=claim.metadata.namespace)
    return SubmitGang(
        cluster=CLUSTER,
        uid=GangUID(f"00000000-0000-4000-8000-{age:012}"),
        gang=Gang(metadata=meta, spec=GangSpec(members=(pod,))),
    )


def ours(case_objects: Json) -> Decided:
    """Decide all claims of a case in one batch."""
    snapshot = snapshot_of(case_objects)
    with SelectorEvaluator() as evaluator:
        return Decider(evaluator).decide(snapshot)


def measure(scenario: str, nodes: int, program: Path | None) -> Row:
    """Measure one scenario on both sides."""
    case_objects = case(scenario, nodes)
    claims = len(case_objects["claims"])
    row: dict[str, str | float | int] = {
        "scenario": scenario,
        "nodes": nodes,
        "claims": claims,
    }
    for mode, name in MODES.items() if program else ():
        assert program is not None
        answer = upstream(program, json.dumps(case_objects).encode(), mode)
        row[f"{name} claims/s"] = claims / answer["cpuSeconds"]
        row[f"{name} placed"] = answer["allocated"]
    decided = ours(case_objects)
    seconds = decided.problem_s + decided.solve_s
    placed = sum(g.verdict == "allocated" for g in decided.decision.gangs)
    row |= {
        "ours claims/s": claims / seconds,
        "ours placed": placed,
        "problem s": decided.problem_s,
        "solve s": decided.solve_s,
        "status": decided.decision.status,
    }
    for name in MODES.values() if program else ():
        rate = row[f"{name} claims/s"]
        row[f"x {name}"] = claims / seconds / float(rate)
    return row


def main() -> None:
    """Measure all scenarios."""
    reading = parser(__doc__ or "")
    reading.add_argument("--nodes", type=int, default=0)
    options = reading.parse_args()
    nodes = options.nodes or NODES[options.size]
    program = built("bench")
    rows = [measure(scenario, nodes, program) for scenario in SCENARIOS]
    report("upstream_rate", options, rows)


if __name__ == "__main__":
    main()
