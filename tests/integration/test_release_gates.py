"""What waits at the gate when Moorings goes is opened by one command."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.names import GANG, GATE
from tests.lab.command_line import moorings
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet, runs
from tests.lab.controlplane.server import ControlPlane

LATER = "example.com/later"


@pytest.fixture
async def site(kube: Kube, namespace: str) -> AsyncIterator[Fleet]:
    """Two nodes, and nobody who opens gates."""
    async with fleet.running(kube, namespace) as site:
        yield site


async def gated(site: Fleet, name: str, *others: str, gang: str = "") -> Json:
    """Create a pod with a claim that waits at our gate, and at others."""
    claim = await site.claim(f"claim-{name}")
    gates = [{"name": gate} for gate in (*others, GATE)]
    pod = site.pod(name, claim, schedulingGates=gates)
    pod["metadata"]["labels"] = {GANG: gang} if gang else {}
    return await site.kube.create(pod)


async def released(
    plane: ControlPlane, home: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as the admin of the cluster."""
    return await asyncio.to_thread(
        moorings,
        "release-gates",
        f"--kubeconfig={plane.kubeconfig()}",
        *arguments,
        home=home,
    )


async def test_gates_are_shown_and_opened_on_demand(
    site: Fleet, kube: Kube, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Only ours, only what is asked for, and kube-scheduler does the rest."""
    rule = objects.taint_rule(site.namespace, f"{site.namespace}.none", "NoSchedule")
    rule["spec"]["taint"]["key"] = "moorings.dev/owned"
    rule = await kube.create(rule)
    one = await gated(site, "one", gang="train")
    two = await gated(site, "two", LATER)
    where = f"--namespace={site.namespace}"
    shown = await released(control_plane, tmp_path, where)
    assert shown.returncode == 0, shown.stderr
    assert "2 pods wait at the gate; nothing changed; use --yes" in shown.stdout
    assert f"in the way: DeviceTaintRule {site.namespace}" in shown.stderr
    assert "no publisher leads" in shown.stderr
    assert (await kube.get(one))["spec"]["schedulingGates"] == [{"name": GATE}]
    opened = await released(
        control_plane, tmp_path, where, "train", "--yes", "-o", "json"
    )
    answer: dict[str, Any] = json.loads(opened.stdout)
    assert [(p["pod"], p["gang"], p["gate"]) for p in answer["pods"]] == [
        ("one", "train", "opened")
    ]
    await kube.until(one, runs)
    everything = await released(control_plane, tmp_path, where, "--yes")
    assert "1 pod waits at the gate; 1 opened" in everything.stdout
    assert (await kube.get(two))["spec"]["schedulingGates"] == [{"name": LATER}]
    await kube.delete(rule)
