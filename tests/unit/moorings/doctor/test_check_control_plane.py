"""Limits and plugins, from flags and from a file."""

from __future__ import annotations

from typing import Any

import pytest

from moorings.doctor.check_control_plane import check_control_plane
from moorings.doctor.findings import CheckLine
from tests.builders.doctor import cluster_facts, control_plane_pod, worst

MANAGER = "kube-controller-manager"
ENOUGH = ("--kube-api-qps=500", "--kube-api-burst=1000")


def found(*pods: dict[str, Any], config: dict[str, Any] | None = None) -> Any:
    facts = cluster_facts(control_plane=pods, scheduler_config=config)
    return worst(check_control_plane(facts))


def of_manager(*flags: str) -> dict[str, CheckLine]:
    lines: dict[str, CheckLine] = found(
        control_plane_pod(MANAGER, *flags), control_plane_pod("kube-scheduler")
    )
    return lines


@pytest.mark.parametrize(
    ("flags", "check", "level"),
    [
        ((), "controller-manager.limits", "warn"),
        (("--kube-api-qps=500",), "controller-manager.limits", "warn"),
        (("--kube-api-qps=74", ENOUGH[1]), "controller-manager.limits", "warn"),
        (("--kube-api-qps=0", ENOUGH[1]), "controller-manager.limits", "warn"),
        (
            (*ENOUGH, "--concurrent-resourceclaim-syncs=1"),
            "controller-manager.syncs",
            "warn",
        ),
        (
            (*ENOUGH, "--controllers=*,-resourceclaim-controller"),
            "controller-manager.controllers",
            "fail",
        ),
        (
            (*ENOUGH, "--controllers=job-controller"),
            "controller-manager.controllers",
            "fail",
        ),
    ],
)
def test_flags_that_hold_up_claims_are_named(
    flags: tuple[str, ...], check: str, level: str
) -> None:
    lines = of_manager(*flags)
    assert list(lines) == [check]
    assert lines[check].level == level


@pytest.mark.parametrize(
    "flags",
    [
        ENOUGH,
        ("--kube-api-qps=-1",),
        (*ENOUGH, "--controllers=resourceclaim-controller,job-controller"),
        (*ENOUGH, "--controllers=*,bootstrap-signer-controller"),
    ],
)
def test_flags_that_are_enough_are_ok(flags: tuple[str, ...]) -> None:
    assert of_manager(*flags) == {}


def test_what_no_pod_shows_is_not_ok() -> None:
    """A managed control plane: the defaults are told, and whom to ask."""
    lines = found()
    assert set(lines) == {"controller-manager.limits", "scheduler.plugins"}
    assert "20 and 30" in lines["controller-manager.limits"].remedy
    assert "--scheduler-config" in lines["scheduler.plugins"].remedy


def test_a_scheduler_with_a_file_of_its_own_is_asked_for_it() -> None:
    pod = control_plane_pod("kube-scheduler", "--config=/etc/s.yaml")
    lines = found(control_plane_pod(MANAGER, *ENOUGH), pod)
    assert "/etc/s.yaml" in lines["scheduler.plugins"].why


@pytest.mark.parametrize(
    "plugins",
    [
        {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}},
        {"filter": {"disabled": [{"name": "DynamicResources"}]}},
        {"preEnqueue": {"disabled": [{"name": "*"}]}},
        {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "NodeAffinity"}, {"name": "SchedulingGates"}],
            }
        },
    ],
)
def test_a_plugin_that_is_off_at_any_point_fails(plugins: dict[str, Any]) -> None:
    manager = control_plane_pod(MANAGER, *ENOUGH)
    line = found(manager, config={"profiles": [{"plugins": plugins}]})
    assert line["scheduler.plugins"].level == "fail"
    assert "DynamicResources" in line["scheduler.plugins"].why


def test_the_plugins_limits_and_the_clients_are_read_from_the_file() -> None:
    arguments = {"name": "DynamicResources", "args": {"filterTimeout": "2s"}}
    config = {
        "profiles": [{"schedulerName": "gpus", "pluginConfig": [arguments]}],
        "clientConnection": {"qps": 5},
    }
    facts = cluster_facts(scheduler_config=config)
    lines = {line.check: line for line in check_control_plane(facts)}
    assert "profile gpus" in lines["scheduler.plugins"].why
    assert "for 2s at most" in lines["scheduler.plugins"].why
    assert lines["scheduler.limits"].level == "warn"
