"""Each rule of lint: objects that break it, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs
from typer.testing import CliRunner

from contracts.codec import to_builtins
from contracts.device import DeviceCounterConsumption
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.names import ALLOCATE, IMMEDIATE
from moorings.cli.main import app
from moorings.lint.findings import LintRule
from tests.builders import (
    DRIVER,
    claim,
    constraint,
    counter_set,
    device,
    device_class,
    devices,
    gang,
    member,
    member_claim,
    request,
    resource_slice,
    sub_request,
    taint_rule,
    topology_rule,
)
from tests.builders.inputs import written_job, written_pod
from tests.builders.values import NODE as THE_NODE

BIG = f'device.attributes["{DRIVER}"].model == "big"'
GPU = device_class()
ROOM = (
    device("a", attributes={"model": "big", "numa": 0}, capacity={"memory": "8Gi"}),
    device("b", attributes={"model": "small", "numa": 1}, capacity={"memory": "8Gi"}),
)
SLICE = resource_slice(*ROOM)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}}
RACKED = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": THE_NODE, "labels": {"rack": "r1"}},
}
NUMA = [constraint(f"{DRIVER}/numa")]
GROUPED = structs.replace(
    device(),
    consumes_counters=(
        DeviceCounterConsumption(counter_set="c", compatibility_groups=("g",)),
    ),
)
ELSEWHERE = resource_slice(*ROOM, name="elsewhere", node="elsewhere", pool="elsewhere")
"""As many devices again, on another node."""
HALVES = (device("half", consumes={"gpu": {"memory": "90Gi"}}),)


def found(folder: Path, *objects: WritableObject | dict[str, Any]) -> tuple[int, Any]:
    raw = [
        item if isinstance(item, dict) else to_builtins(to_kubernetes(item))
        for item in objects
    ]
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(raw))
    done = CliRunner().invoke(app, ["lint", "-f", str(path), "-o", "json"])
    return done.exit_code, json.loads(done.stdout)


MISSPELT = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "misspelt"},
    "spec": {"selector": []},
}
AT_ONCE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "at-once"},
    "spec": {
        "metadata": {"labels": {ALLOCATE: IMMEDIATE}},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": GPU.metadata.name}}
                ]
            }
        },
    },
}
ASKING: dict[str, Any] = {
    "resourceClaims": [{"name": "gpu", "resourceClaimName": claim().metadata.name}],
    "containers": [
        {"name": "c", "resources": {"claims": [{"name": "gpu", "request": "gone"}]}}
    ],
}
PART = {"name": "c", "resources": {"requests": {"memory": "1500m"}}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": claim().metadata.namespace},
    "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "0"}},
}
BROKEN: list[tuple[LintRule, tuple[Any, ...]]] = [
    (LintRule.INVALID, (SLICE, GPU, claim(request(count=-1)))),
    (LintRule.UNKNOWN_FIELD, (SLICE, MISSPELT)),
    (LintRule.UNKNOWN_CLASS, (SLICE, claim())),
    (
        LintRule.UNKNOWN_TEMPLATE,
        (GPU, gang(member(member_claim(template="missing"), name="m"))),
    ),
    (LintRule.UNKNOWN_CLAIM, (written_pod("p", claim="gone"),)),
    (LintRule.UNKNOWN_REQUEST, (SLICE, GPU, claim(), written_pod("p", **ASKING))),
    (LintRule.NODE_NAME, (claim(), written_pod("p", nodeName="node-1", **ASKING))),
    (
        LintRule.NO_EFFECT,
        (written_pod("p", schedulingGates=[{"name": "moorings.dev/alocation"}]),),
    ),
    (
        LintRule.NO_EFFECT,
        (written_pod("p", metadata={"labels": {"mooring.dev/gang": "g"}}),),
    ),
    (LintRule.GANG_WAITS, (written_job("train", 2, gang="train"),)),
    (LintRule.SIZE_DIFFERS, (written_job("train", 3, gang="train", size=2),)),
    (LintRule.QUOTA, (SLICE, GPU, claim(), QUOTA)),
    (LintRule.SELECTOR_ERROR, (SLICE, device_class("broken", "device.nope"))),
    (
        LintRule.SELECTOR_ERROR,
        (
            resource_slice(*ROOM, device("c")),
            device_class(),
            claim(request(select=(BIG,))),
        ),
    ),
    (LintRule.CLASS_EMPTY, (SLICE, device_class("none", 'device.driver == "x"'))),
    (LintRule.REQUEST_EMPTY, (SLICE, GPU, claim(request(select=("false",))))),
    (LintRule.CAPACITY, (SLICE, GPU, claim(request(capacity={"memory": "9Gi"})))),
    (LintRule.CONSTRAINT, (SLICE, GPU, claim(request(count=2), constraints=NUMA))),
    (
        LintRule.ATTRIBUTE_MISSING,
        (resource_slice(*ROOM, device("c")), GPU, claim(constraints=NUMA)),
    ),
    (
        LintRule.TOPOLOGY_KEY,
        (SLICE, GPU, RACKED, gang(topology=(topology_rule("raek"),))),
    ),
    (
        LintRule.TOPOLOGY,
        (SLICE, GPU, RACKED, gang(member(count=3), topology=(topology_rule("rack"),))),
    ),
    (
        LintRule.DEVICE_LIMIT,
        (SLICE, GPU, claim(request("one", count=20), request("two", count=20))),
    ),
    (
        LintRule.DEVICE_LIMIT,
        (resource_slice(*devices(33)), GPU, claim(request(mode="All"))),
    ),
    (LintRule.FRACTION, (written_pod("p", containers=[PART]),)),
    (
        LintRule.ALTERNATIVE_UNREACHABLE,
        (
            SLICE,
            GPU,
            claim(request(first_available=(sub_request("one"), sub_request("two")))),
        ),
    ),
    (LintRule.POOL_INCOMPLETE, (resource_slice(*ROOM, slice_count=2),)),
    (LintRule.POOL_INVALID, (resource_slice(device("a"), device("a")),)),
    (
        LintRule.POOL_AMBIGUOUS,
        (
            resource_slice(device("a"), name="one", node="one", pool="eth"),
            resource_slice(device("a"), name="two", node="two", pool="eth"),
        ),
    ),
    (LintRule.FEATURE_OFF, (resource_slice(GROUPED),)),
    (LintRule.TAINT_SCOPE, (taint_rule(),)),
    (LintRule.GANG_TOO_LARGE, (SLICE, GPU, gang(member(count=3)))),
    (
        LintRule.GANG_TOO_LARGE,
        (SLICE, ELSEWHERE, GPU, gang(member(member_claim(request(count=3))))),
    ),
    (
        LintRule.POOL_OBSOLETE,
        (
            resource_slice(*ROOM, name="one", generation=1),
            resource_slice(*ROOM, name="two", generation=2),
        ),
    ),
    (LintRule.SLICE_NOWHERE, (SLICE, NODE)),
    (
        LintRule.COUNTER_EXCEEDED,
        (
            resource_slice(*HALVES, name="one", slice_count=2),
            resource_slice(
                name="two", counters=[counter_set("gpu", memory="80Gi")], slice_count=2
            ),
        ),
    ),
    (
        LintRule.COUNTER_NEGATIVE,
        (
            resource_slice(
                device(consumes={"gpu": {"memory": "-1Gi"}}), name="one", slice_count=2
            ),
            resource_slice(
                name="two", counters=[counter_set("gpu", memory="80Gi")], slice_count=2
            ),
        ),
    ),
    (
        LintRule.ATTRIBUTE_TWICE,
        (resource_slice(device(attributes={"numa": 1, f"{DRIVER}/numa": 2})),),
    ),
    (LintRule.IMMEDIATE, (SLICE, GPU, AT_ONCE)),
]


@pytest.mark.parametrize(("rule", "objects"), BROKEN, ids=range(len(BROKEN)))
def test_what_breaks_a_rule_is_found(
    tmp_path: Path, rule: LintRule, objects: tuple[Any, ...]
) -> None:
    code, answer = found(tmp_path, *objects)
    rules = {finding["rule"] for finding in answer["findings"]}
    assert rule in rules, answer
    assert code == (1 if answer["errors"] else 0)


def test_every_rule_is_tried() -> None:
    assert {rule for rule, _ in BROKEN} == set(LintRule)


EITHER = claim(
    request(
        first_available=(
            sub_request("pair", count=2),
            sub_request("one", select=(BIG,)),
        )
    ),
    constraints=NUMA,
)
WHOLE = {
    "name": "c",
    "resources": {"requests": {"cpu": "1500m", "memory": "1000m", "storage": "1.5Gi"}},
}
EVERYWHERE = resource_slice(*ROOM, pool="fabric", all_nodes=True)
SOUND: list[tuple[Any, ...]] = [
    (SLICE, GPU, claim(request(count=2))),
    (SLICE, GPU, EITHER),
    (SLICE, GPU, gang(member(count=2))),
    (SLICE, GPU, gang(member(member_claim(request(admin_access=True)), count=9))),
    (taint_rule(driver=DRIVER),),
    (resource_slice(*devices(33)), ELSEWHERE, GPU, claim(request(mode="All"))),
    (SLICE, GPU, written_pod("p", containers=[WHOLE])),
    (EVERYWHERE, GPU, claim(request(capacity={"memory": "8Gi"}))),
    (resource_slice(device(attributes={"numa": 1, "other.org/numa": 2})), GPU),
    (SLICE, GPU, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}),
]


@pytest.mark.parametrize("objects", SOUND, ids=range(len(SOUND)))
def test_sound_objects_are_left_alone(tmp_path: Path, objects: tuple[Any, ...]) -> None:
    assert found(tmp_path, *objects)[1]["findings"] == []


def test_a_node_without_a_name_is_no_traceback(tmp_path: Path) -> None:
    nameless = {"apiVersion": "v1", "kind": "Node", "metadata": {}}
    assert found(tmp_path, SLICE, GPU, nameless)[0] == 0


def test_warnings_count_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    objects: list[WritableObject] = [
        SLICE,
        device_class("none", 'device.driver == "x"'),
    ]
    path.write_text(
        yaml.safe_dump_all([to_builtins(to_kubernetes(item)) for item in objects])
    )
    lint = ["lint", "-f", str(path)]
    table = CliRunner().invoke(app, lint)
    assert table.exit_code == 0
    assert "deviceclass/none" in table.stdout
    assert "0 errors, 1 warning in" in table.stdout
    assert CliRunner().invoke(app, [*lint, "--strict"]).exit_code == 1
