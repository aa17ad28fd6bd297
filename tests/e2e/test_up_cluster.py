"""`moorings up --kubeconfig`: the stack for a cluster; a mistake is one line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OwnControlPlane
from tests.lab.cluster import fleet, gang_pod, is_bound, pods_until
from tests.lab.command_line import MAIN, moorings
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube, RefusedError, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.options import API_SERVER, ETCD, Options, User
from tests.lab.controlplane.server import ControlPlane

DEAD = {"server": "https://127.0.0.1:1"}


def kubeconfig(path: Path, **changes: Any) -> str:
    """Write a kubeconfig of a cluster that nobody answers for."""
    context = {"cluster": "dead", "user": "me"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "dead", "cluster": DEAD}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "far", "context": context}],
        "current-context": "far",
    }
    path.write_text(json.dumps(config | changes))
    return str(path)


ALONE = [{"name": "far", "context": {"user": "me"}}]
MISTAKES: list[tuple[dict[str, Any], list[str], int, str]] = [
    ({"contexts": []}, [], 3, "is not a kubeconfig: it has no contexts"),
    ({"contexts": "far"}, [], 3, "is not a kubeconfig: it has no contexts"),
    ({"current-context": ""}, [], 3, "choose one with --context: far"),
    ({}, ["--context", "near"], 3, "has no context 'near'; it has far"),
    ({"contexts": ALONE}, [], 3, "context 'far' is of cluster 'None'"),
    ({}, [], 3, "127.0.0.1:1"),
    ({}, ["--folder", "x"], 2, "--folder and -f exclude --kubeconfig"),
]


@pytest.mark.parametrize(("changes", "more", "code", "text"), MISTAKES)
def test_a_mistake_about_the_cluster_is_named(
    tmp_path: Path, changes: dict[str, Any], more: list[str], code: int, text: str
) -> None:
    file = kubeconfig(tmp_path / "config", **changes)
    answer = moorings("up", "--kubeconfig", file, *more, home=tmp_path)
    assert answer.returncode == code, answer.stdout + answer.stderr
    assert text in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert "secret" not in answer.stderr


PREPARED = (
    "create namespace moorings-system",
    "create clusterrole namespaces --verb=get --resource=namespaces",
    "create clusterrolebinding namespaces --clusterrole=namespaces --user=poor",
)


def test_a_cluster_that_lacks_something_is_told_so(
    own_control_plane: OwnControlPlane, control_plane_programs: Path, tmp_path: Path
) -> None:
    programs = (ETCD, API_SERVER)
    plane = own_control_plane(Options(programs=programs, users=(User("poor"),)))
    file = plane.kubeconfig()
    lacking = moorings("up", "--kubeconfig", str(file), home=tmp_path)
    assert lacking.returncode == 3
    assert "kubectl create namespace moorings-system" in lacking.stderr
    with_namespace = Kubectl(control_plane_programs / "kubectl", file)
    for words in PREPARED:
        with_namespace(*words.split())
    poor = str(plane.kubeconfig("poor"))
    denied = moorings("up", "--kubeconfig", poor, home=tmp_path)
    assert denied.returncode == 3
    assert "missing permissions: verb list on pods" in denied.stderr
    assert "; verb list on resourceclaims of group resource.k8s.io" in denied.stderr
    assert len(denied.stderr.splitlines()) == 1
    stranger = tmp_path / "stranger"
    plane.write_kubeconfig(stranger, "nobody's token")
    refused = moorings("up", "--kubeconfig", str(stranger), home=tmp_path)
    assert refused.returncode == 3
    assert "credentials that the API server accepts" in refused.stderr


def two_contexts(plane: ControlPlane, folder: Path) -> str:
    """Write a kubeconfig whose current context is of a cluster that nobody runs."""
    found = json.loads(plane.kubeconfig().read_text())
    found["clusters"].append({"name": "dead", "cluster": DEAD})
    context = {"cluster": "dead", "user": "user"}
    found["contexts"].append({"name": "elsewhere", "context": context})
    file = folder / "config"
    file.write_text(json.dumps(found | {"current-context": "elsewhere"}))
    return str(file)


@asynccontextmanager
async def up(home: Path, *arguments: str) -> AsyncIterator[str]:
    """Run `moorings up` while the block runs; gives what it says when it is ready."""
    process = await asyncio.create_subprocess_exec(
        *(*MAIN, "up", *arguments),
        env={**os.environ, "XDG_STATE_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            yield (await process.stdout.readline()).decode()
            process.send_signal(signal.SIGINT)
            rest, _ = await process.communicate()
        assert process.returncode == 0, rest.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def node_names(home: Path) -> set[str]:
    """List the nodes that the stack knows."""
    command = ("get", "nodes", "-o", "json")
    shown = await asyncio.to_thread(moorings, *command, home=home)
    return {node["name"] for node in json.loads(shown.stdout)}


async def test_a_second_publisher_is_not_started(
    control_plane: ControlPlane, kube: Kube, tmp_path: Path
) -> None:
    """One stack leads; another, with another bus, would decide against it."""
    with contextlib.suppress(RefusedError):
        await kube.create(named("v1", "Namespace", "moorings-system"))
    cluster = ("--kubeconfig", str(control_plane.kubeconfig()))
    # What was simulated before is nothing to the cluster.
    async with up(tmp_path):
        simulated = await node_names(tmp_path)
        assert simulated
    async with up(tmp_path, *cluster):
        assert not simulated & await node_names(tmp_path)
        other = await asyncio.to_thread(
            moorings, "up", *cluster, home=tmp_path / "other"
        )
        assert other.returncode == 3
        lease = "Lease moorings-system/moorings-publisher"
        held = rf"{lease}: held by up-\S+, which serves this cluster"
        assert re.search(held, other.stderr)


async def test_it_is_not_started_beside_an_installed_site_that_nobody_leads(
    control_plane: ControlPlane, kube: Kube, tmp_path: Path
) -> None:
    """Its publisher starts at any moment; without replicas it is no site's."""
    with contextlib.suppress(RefusedError):
        await kube.create(named("v1", "Namespace", "moorings-system"))
    labels = {"app.kubernetes.io/name": "publisher"}
    pods = {"containers": [{"name": "publisher", "image": "moorings"}]}
    deployment = named("apps/v1", "Deployment", "publisher", "moorings-system")
    deployment["spec"] = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pods},
    }
    await kube.create(deployment)
    cluster = ("--kubeconfig", str(control_plane.kubeconfig()))
    try:
        refused = await asyncio.to_thread(moorings, "up", *cluster, home=tmp_path)
        assert refused.returncode == 3
        (line,) = refused.stderr.splitlines()
        assert "Deployment publisher (2 replicas) would serve this cluster" in line
        remedy = "kubectl -n moorings-system scale deployment publisher --replicas=0"
        assert line.endswith(remedy)
        await kube.patch(deployment, {"spec": {"replicas": 0}})
        async with up(tmp_path, *cluster) as said:
            assert f"cluster {control_plane.url}" in said
    finally:
        await kube.delete(deployment)


async def test_pods_of_a_cluster_are_decided_and_shown_by_their_names(
    control_plane: ControlPlane, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """The context that is chosen counts, and kubectl's names are shown."""
    with contextlib.suppress(RefusedError):
        await kube.create(named("v1", "Namespace", "moorings-system"))
    driver = f"{namespace}.example.com"
    (node,) = await fleet(kube, namespace, 1, 4)
    await kube.create(objects.template(namespace, "pair", objects.requests(driver, 2)))
    file = two_contexts(control_plane, tmp_path)
    owned = ("--own-driver", driver, "--own-class", driver)
    cluster = ("--kubeconfig", file, "--context", "test")
    async with up(tmp_path, *cluster, *owned) as said:
        assert f"cluster {control_plane.url} (context test)" in said
        names = ["train-0", "train-1"]
        for name in names:
            pod = gang_pod(
                namespace, name, gang="train", size=2, templates={"gpus": "pair"}
            )
            await kube.create(pod)
        bound = await pods_until(kube, namespace, names, is_bound)
        (claim,) = [
            status["resourceClaimName"]
            for status in bound[1]["status"]["resourceClaimStatuses"]
        ]
        words = ("explain", "pod/train-1", "-n", namespace)
        explained = await asyncio.to_thread(moorings, *words, home=tmp_path)
        assert explained.returncode == 0, explained.stderr
        assert f"pod/train-1 on {node}: dev-" in explained.stdout
        assert f" of resourceclaim/{claim}" in explained.stdout
        wanted = ("get", "pods", "-n", namespace, "-o", "json")
        shown = await asyncio.to_thread(moorings, *wanted, home=tmp_path)
        assert sorted(view["name"] for view in json.loads(shown.stdout)) == names
