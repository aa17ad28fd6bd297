"""Pods at the gate, and what else is in their way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.names import GANG, GATE, OWNED
from moorings.gates import find_leader, list_obstacles, list_waiting

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def pod(name: str, *gates: str, namespace: str = "a", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            **meta,
        },
        "spec": {"schedulingGates": [{"name": gate} for gate in gates]},
    }


PODS = (
    pod("other", "example.com/later"),
    pod("open"),
    pod("w-1", GATE, labels={GANG: "train"}),
    pod("j-x", GATE, ownerReferences=[{"name": "j", "controller": True}]),
    pod("lone", "example.com/later", GATE, namespace="b"),
)


@pytest.mark.parametrize(
    ("namespace", "names", "found"),
    [
        ("", (), ["j-x", "w-1", "lone"]),
        ("b", (), ["lone"]),
        ("", ("train",), ["w-1"]),
        ("", ("a/train", "j"), ["j-x", "w-1"]),
        ("", ("b/train",), []),
        ("", ("lone",), ["lone"]),
        ("a", ("lone",), []),
    ],
)
def test_only_what_our_gate_holds_is_released(
    namespace: str, names: tuple[str, ...], found: list[str]
) -> None:
    assert [p.name for p in list_waiting(PODS, namespace, names)] == found


def test_gates_of_others_stay() -> None:
    (waiting,) = list_waiting(PODS, "b", ())
    assert waiting.other_gates == ("example.com/later",)
    assert waiting.opening == {
        "spec": {"schedulingGates": [{"name": "example.com/later"}]}
    }


def test_what_keeps_devices_and_new_pods_away_is_named_with_its_remedy() -> None:
    taint = {"key": OWNED, "effect": "NoSchedule"}
    rules = [
        {"metadata": {"name": "moorings-owned-a"}, "spec": {"taint": taint}},
        {"metadata": {"name": "theirs"}, "spec": {"taint": {"key": "x"}}},
    ]
    device = {"name": "gpu-0", "taints": [taint]}
    slices: list[dict[str, Any]] = [
        {"spec": {"driver": "gpu", "devices": [{"name": "a"}, device]}},
        {"spec": {"driver": "old", "devices": [{"name": "b", "basic": device}]}},
        {"spec": {"driver": "free", "devices": [{"name": "c"}]}},
        {"spec": {"driver": "bare"}},
    ]
    policies = [
        {"kind": "MutatingAdmissionPolicy", "metadata": {"name": name}}
        for name in ("moorings-gate-gangs", "moorings-nodeagent")
    ]
    policy = "mutatingadmissionpolicy"
    found = list_obstacles(rules=rules, slices=slices, policies=policies)
    assert [
        (item.kind, item.name, item.remedy.split(", or ")[-1]) for item in found
    ] == [
        (
            "DeviceTaintRule",
            "moorings-owned-a",
            "kubectl delete devicetaintrule moorings-owned-a",
        ),
        (
            "ResourceSlice",
            "gpu",
            "kubectl delete resourceslices --field-selector spec.driver=gpu",
        ),
        (
            "ResourceSlice",
            "old",
            "kubectl delete resourceslices --field-selector spec.driver=old",
        ),
        (
            "MutatingAdmissionPolicy",
            "moorings-gate-gangs",
            f"kubectl delete {policy},{policy}binding moorings-gate-gangs",
        ),
    ]


def lease(holder: str, renewed: str) -> dict[str, Any]:
    return {
        "spec": {
            "holderIdentity": holder,
            "renewTime": renewed,
            "leaseDurationSeconds": 15,
        }
    }


def test_nobody_leads_by_a_lease_that_nobody_renews() -> None:
    young, old = "2026-11-20T11:59:30.5Z", "2026-11-20T11:58:00.5Z"
    assert find_leader([lease("one", young)], NOW) == ("one", "")
    assert find_leader([lease("one", old)], NOW) == ("", old)
    assert find_leader([lease("", young), lease("one", old)], NOW) == ("", young)
    assert find_leader([{"spec": {}}, {}], NOW) == ("", "")
    assert find_leader([lease("one", "soon")], NOW) == ("", "")
