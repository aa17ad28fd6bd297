"""The executable as people use it: help, answers, exit codes, and tired mistakes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from contracts import topics
from contracts.ids import Namespace, NodeName
from contracts.lifecycle import GangRecord
from contracts.messages import (
    AllocationWritten,
    DevicesAnnounced,
    GatesOpened,
    ObjectGone,
    ObjectObserved,
    PodWritten,
)
from contracts.names import GANG_UID
from contracts.reports import WAITING, GroupReported, PodsReport
from moorings.bus_client import Client
from runtime.wire import Outgoing
from tests.builders import pool
from tests.builders.inputs import TRAIN, named
from tests.lab.command_line import MAIN, moorings, open_as, read_server, stack_up


def names_shown(*arguments: str, home: Path) -> set[str]:
    """Return the names in the JSON that a command shows."""
    shown = moorings(*arguments, "-o", "json", home=home)
    return {view["name"] for view in json.loads(shown.stdout)}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A running `moorings up` of the small fleet: its state home and server."""
    home = tmp_path_factory.mktemp("home")
    with stack_up(home) as process:
        yield home, read_server(process)


def test_a_gang_lives_its_life(stack: tuple[Path, str], tmp_path: Path) -> None:
    """Submitted, decided, shown, explained, replayed, released; server found."""
    home, _ = stack
    file = tmp_path / "gang.yaml"
    file.write_text(yaml.safe_dump(TRAIN))
    submitted = moorings("submit", "-f", str(file), "--wait", home=home)
    assert submitted.returncode == 0, submitted.stderr
    assert "gang/train submitted" in submitted.stdout
    shown = moorings("get", "-o", "json", home=home)
    (view,) = json.loads(shown.stdout)
    assert (view["name"], view["pods"]) == ("train", 2)
    explained = moorings("explain", "train", home=home)
    assert "worker/0 on " in explained.stdout
    listed = moorings("solves", "list", "-o", "json", home=home)
    solve = json.loads(listed.stdout)[-1]["opened"]["solve"]
    target = tmp_path / "solve.moorings"
    exported = moorings("solves", "export", solve[:8], "--file", str(target), home=home)
    assert exported.returncode == 0, exported.stderr
    replayed = moorings("replay", str(target), home=home)
    assert replayed.returncode == 0
    assert "same bytes" in replayed.stdout
    released = moorings("release", "team-a/train", home=home)
    assert "gang/train released" in released.stdout
    for _ in range(100):
        (view,) = json.loads(moorings("get", "train", "-o", "json", home=home).stdout)
        if view["phase"] == "Completed":
            break
        time.sleep(0.1)
    assert view["phase"] == "Completed"
    assert moorings("release", "train", home=home).returncode == 1


def test_a_no_is_exit_code_1_and_says_why(stack: tuple[Path, str]) -> None:
    home, _ = stack
    asked = json.loads(json.dumps(TRAIN))
    asked["metadata"]["name"] = "too-large"
    asked["spec"]["members"][0]["count"] = 100
    answer = moorings("submit", "-f", "-", "--wait", home=home, stdin=json.dumps(asked))
    assert answer.returncode == 1
    assert "DevicesTaken" in answer.stdout or "NoCandidate" in answer.stdout
    explained = moorings("explain", "too-large", home=home)
    assert "devices: " in explained.stdout
    assert "attempt 0" not in explained.stdout
    assert "  place 1 of 1 in line\n" in explained.stdout
    assert "waits since 20" in explained.stdout
    helped = moorings("explain", "too-large", "--what-helps", "-o", "json", home=home)
    (found,) = [json.loads(helped.stdout)]
    assert any(tried["helps"] for tried in found["help"]["tried"])
    assert found["decisions"][-1]["solve"] == found["help"]["solve"]
    listed = moorings("get", "-l", "!app", "-o", "name", home=home)
    assert "gang.moorings.dev/too-large" in listed.stdout.split()
    solves = ("solves", "list", "--gang=too-large", "--since=1h", "--limit=1")
    (solve,) = json.loads(moorings(*solves, "-o", "json", home=home).stdout)
    shown = moorings("solves", "show", solve["opened"]["solve"], home=home)
    assert "team-a/too-large" in shown.stdout
    at = solve["opened"]["openedAt"]
    replayed = moorings("replay", at[:19] + "Z", "--gang=too-large", home=home)
    assert "same bytes" in replayed.stdout
    assert moorings("cancel", "too-large", home=home).returncode == 0


def child_of(process: subprocess.Popen[str], name: str) -> int:
    """Return the id of a child of this name."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    pids = [pid for task in tasks for pid in task.read_text().split()]
    (pid,) = [p for p in pids if name in Path(f"/proc/{p}/cmdline").read_text()]
    return int(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_a_second_stack_is_found_by_its_folder_and_outlives_its_server(
    stack: tuple[Path, str], tmp_path: Path
) -> None:
    """The server that was killed is started again, which is said; nothing is lost."""
    home, first_server = stack
    folder = tmp_path / "second"
    where = ("--state-dir", str(folder))
    with stack_up(home, *where) as process:
        assert read_server(process) != first_server
        taken = moorings("up", *where, home=home)
        assert (taken.returncode, taken.stdout) == (3, "")
        assert f"another one runs with its state in {folder}" in taken.stderr
        submit = ("submit", "-f", "-", "--wait", *where)
        before, after = (json.dumps(named(name)) for name in ("before", "after"))
        assert moorings(*submit, home=home, stdin=before).returncode == 0
        os.kill(child_of(process, "nats-server"), signal.SIGKILL)
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        restarted = next(line for line in lines if "nats-server" in line)
        assert restarted == "nats-server was killed by SIGKILL and was started again\n"
        again = moorings(*submit, home=home, stdin=after)
        assert again.returncode == 0, again.stderr
        assert names_shown("get", *where, home=home) == {"before", "after"}
        assert not names_shown("get", home=home) & {"before", "after"}
    ended = moorings("get", *where, home=home)
    assert ended.returncode == 3
    assert f"`moorings up --state-dir {folder}` starts one" in ended.stderr


async def say_written(home: Path, gang: GangRecord) -> None:
    """Say what a publisher of a cluster says: what was written, that gates opened."""
    async with open_as("publisher", home) as client:
        who = (client.cluster, gang.namespace, gang.uid)
        pods = tuple(
            PodWritten(
                member="worker",
                index=index,
                pod=f"train-b-{index}",
                claims={"gpus": f"train-b-{index}-gpus-x7f2c"},
            )
            for index in range(2)
        )
        written = AllocationWritten(
            cluster=who[0], namespace=who[1], uid=who[2], attempt=gang.attempt
        ).naming(pods)
        opened = GatesOpened(
            cluster=who[0], namespace=who[1], uid=who[2], attempt=gang.attempt, state=0
        )
        for pod in pods:
            await observe(client, "Pod", pod.pod, {GANG_UID: gang.uid})
            await observe(client, "ResourceClaim", pod.claims["gpus"], {})
        for message in (written, opened):
            await client.bus.publish(Outgoing.of(topics.CONFIRMATIONS, message))


async def observe(
    client: Client, kind: str, name: str, annotations: dict[str, str]
) -> None:
    """Say that the cluster has an object, of which only the names matter."""
    metadata = {"namespace": "team-a", "name": name, "annotations": annotations}
    versions = {"Pod": "v1", "ResourceClaim": "resource.k8s.io/v1"}
    raw = {"apiVersion": versions[kind], "kind": kind, "metadata": metadata}
    message = ObjectObserved(
        cluster=client.cluster, kind=kind, key=f"team-a/{name}", object=raw
    )
    await client.bus.publish(Outgoing.of(topics.STATE, message))


async def gang_named(home: Path, name: str) -> GangRecord:
    async with open_as("publisher", home) as client:
        return await client.find_gang(name)


def test_pods_and_claims_are_named_as_kubectl_does(stack: tuple[Path, str]) -> None:
    """By everything that shows a gang, once the publisher has named them."""
    home, _ = stack
    asked = json.loads(json.dumps(TRAIN))
    asked["metadata"]["name"] = "train-b"
    answer = moorings("submit", "-f", "-", "--wait", home=home, stdin=json.dumps(asked))
    assert answer.returncode == 0, answer.stderr
    with watching(home, 2) as watch:
        gang = asyncio.run(gang_named(home, "train-b"))
        while watch.poll() is None:
            asyncio.run(say_written(home, gang))
        seen = watch.communicate(timeout=120)[0]
    assert "; pod/train-b-1 resourceclaim/train-b-1-gpus-x7f2c\n" in seen
    (view,) = json.loads(
        moorings("get", "pod", "train-b-1", "-o", "json", home=home).stdout
    )
    assert view["claims"] == ["train-b-1-gpus-x7f2c"]
    assert (view["gang"], view["member"], view["devices"]) == ("train-b", "worker/1", 4)
    table = moorings("get", "pods", "-n", "team-a", home=home).stdout
    assert "train-b-0   train-b   worker/0" in table
    for words in (["train-b"], ["pod/train-b-1"], ["gang/train-b", "-n", "team-a"]):
        explained = moorings("explain", *words, home=home)
        assert explained.returncode == 0, explained.stderr
        assert "team-a/train-b: Running" in explained.stdout
        assert "worker/1 pod/train-b-1 on " in explained.stdout
        assert " of resourceclaim/train-b-1-gpus-x7f2c" in explained.stdout
    asyncio.run(end_pod(home, "train-b-1"))
    assert names_shown("get", "pods", home=home) == {"train-b-0"}
    explained = moorings("explain", "train-b", home=home)
    assert "worker/1 pod/train-b-1 (gone) on " in explained.stdout
    again = moorings("submit", "-f", "-", home=home, stdin=json.dumps(asked))
    assert again.returncode == 0, again.stderr
    both = json.loads(moorings("explain", "train-b", "-o", "json", home=home).stdout)
    assert [view["name"] for view in both] == ["train-b", "train-b"]
    answer = moorings("release", "train-b", home=home)
    assert answer.returncode == 3
    assert all(view["uid"] in answer.stderr for view in both)
    for view in both:
        assert moorings("release", view["uid"], home=home).returncode == 0


async def end_pod(home: Path, name: str) -> None:
    """Say that a pod and its claim are gone."""
    async with open_as("publisher", home) as client:
        for kind, key in (("Pod", name), ("ResourceClaim", f"{name}-gpus-x7f2c")):
            gone = ObjectGone(cluster=client.cluster, kind=kind, key=f"team-a/{key}")
            await client.bus.publish(Outgoing.of(topics.STATE, gone))


async def report(home: Path, *reports: PodsReport) -> None:
    """Say what a publisher of a cluster says of pods that it cannot submit."""
    async with open_as("publisher", home) as client:
        message = GroupReported(
            cluster=client.cluster,
            namespace=Namespace("team-a"),
            kind="Gang",
            name="halves",
            since="2026-01-01T00:00:00+00:00",
            reports=reports,
        )
        await client.bus.publish(Outgoing.of(topics.REPORTS, message))


def test_a_gang_that_was_not_submitted_is_known(stack: tuple[Path, str]) -> None:
    home, _ = stack
    missing = PodsReport(
        phase=WAITING,
        reason="PodsMissing",
        message="3 of 4 pods are there",
        pods=3,
        names=("halves-0", "halves-1", "halves-2"),
    )
    asyncio.run(report(home, missing))
    shown = moorings("get", "gangs", "halves", home=home).stdout.splitlines()[1]
    assert shown.split()[1:5] == ["halves", "Waiting", "0", "3"]
    for words in ("halves", "team-a/halves", "pod/halves-1"):
        explained = moorings("explain", words, home=home)
        assert explained.returncode == 0, explained.stderr
        assert "  PodsMissing: 3 of 4 pods are there\n" in explained.stdout


@contextmanager
def watching(home: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    """Watch for so many events in a process of its own."""
    process = subprocess.Popen(
        [*MAIN, "watch", "-n", "team-a", "--count", str(count)],
        env={**os.environ, "XDG_STATE_HOME": str(home), "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_kubectl_finds_the_plugin_and_completes_its_words(
    stack: tuple[Path, str], control_plane_programs: Path
) -> None:
    home, _ = stack
    ours = Path(sys.executable).parent
    kubectl = str(control_plane_programs / "kubectl")
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "PATH": str(ours)}
    for words, text in (
        (["moorings", "get", "nodes"], "NAME"),
        (["moorings", "get", "--help"], "Usage: kubectl moorings get"),
        (["moorings", "sumbit"], "try: kubectl moorings --help"),
        (["__complete", "moorings", "get", "so"], "solves\n:0"),
    ):
        answer = subprocess.run(
            [kubectl, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert text in answer.stdout + answer.stderr


def test_nodes_and_devices_are_shown(stack: tuple[Path, str]) -> None:
    home, _ = stack
    shown = moorings("get", "nodes", home=home)
    assert shown.returncode == 0, shown.stderr
    head, first, *_ = shown.stdout.splitlines()
    assert head.split() == [
        "NAME",
        "STATUS",
        "DEVICES",
        "FREE",
        "HELD",
        "UNUSABLE",
        "POOLS",
    ]
    name, status, devices, *_ = first.split()
    assert status == "ready"
    shown = moorings("get", "devices", "--node", name, "-o", "json", home=home)
    rows = json.loads(shown.stdout)
    assert len(rows) == int(devices)
    assert {row["node"] for row in rows} == {name}
    wide = moorings("get", "devices", "--state", "free", "-o", "wide", home=home)
    columns = wide.stdout.splitlines()[0].split()[-5:]
    assert columns == ["TAINTS", "WHY", "HEALTHSINCE", "HEALTHMESSAGE", "DRIFT"]


MISTAKES = {
    ("get", "nothing-here"): (3, "no gang named 'nothing-here'"),
    ("get", "pod", "nothing-here"): (3, "no pod named 'nothing-here'"),
    ("get", "deployments", "web"): (2, "unknown kind 'deployments'; the kinds are dev"),
    ("get", "devices", "--state", "broken"): (
        2,
        "--state 'broken' is unknown; use one of drifted, free",
    ),
    ("get", "pods", "--node", "a"): (2, "get: --node is for nodes and devices, not"),
    ("explain", "node/a"): (2, "'node/a' is neither a gang nor pod/NAME"),
    ("explain", "pod/nothing-here"): (3, "no pod named 'nothing-here'; waiting pods"),
    ("explain", "nothing-here"): (3, "`kubectl describe pod` says why they wait"),
    ("get", "-o", "xml"): (2, "unknown --output 'xml'; the formats are table, wide"),
    ("replay", "ffffffff"): (3, "no solve named 'ffffffff'"),
    ("submit", "-f", "missing.yaml"): (3, "missing.yaml: No such file"),
    ("submit",): (2, "filename"),
    ("sumbit",): (2, "No such command"),
    ("plan",): (2, "needs either -f FILE or --jsonl"),
    ("plan", "-f", "missing.yaml"): (3, "missing.yaml: No such file"),
    ("plan", "-f", "x", "--feature-gates", "Nope=true"): (2, "'Nope' is unknown"),
    ("plan", "-f", "x", "--order", "random"): (2, "'random' is not one of"),
    ("get", "--server", "nats://127.0.0.1:1"): (3, "nats"),
    ("get", "--cluster", ""): (3, "--cluster"),
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_named_without_a_traceback(
    stack: tuple[Path, str], arguments: tuple[str, ...]
) -> None:
    home, _ = stack
    code, text = MISTAKES[arguments]
    answer = moorings(*arguments, home=home)
    assert answer.returncode == code, answer.stdout + answer.stderr
    assert text in answer.stderr
    assert "Traceback" not in answer.stderr + answer.stdout


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("{", "standard input"),
        (
            "kind: Pod\napiVersion: v1\nmetadata: {name: p}\n",
            "expected a Gang, got Pod",
        ),
        (json.dumps({**TRAIN, "spec": {"members": []}}), "spec.members"),
        (json.dumps({**TRAIN, "spec": {"members": 3}}), "spec.members"),
    ],
)
def test_a_bad_document_is_refused_by_field(
    stack: tuple[Path, str], document: str, text: str
) -> None:
    home, _ = stack
    answer = moorings("submit", "-f", "-", home=home, stdin=document)
    assert answer.returncode == 3
    assert text in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_node_that_speaks_of_others_takes_nothing(stack: tuple[Path, str]) -> None:
    """Of neither its driver, which the fleet has not, nor of other nodes' pools."""
    home, _ = stack
    names = [f"gpu-{index}" for index in range(8)]
    emptied = (
        replace(pool(name=n, driver="gpu.moorings.dev"), devices=()) for n in names
    )
    foreign = pool(name="evil", driver="gpu.vendor.example")

    async def announce() -> None:
        async with open_as("nodeagent", home) as client:
            evil = DevicesAnnounced(
                cluster=client.cluster,
                node=NodeName("evil"),
                pools=(*emptied, foreign),
            )
            await client.bus.publish(Outgoing.of(topics.INVENTORIES, evil))
            gone = replace(evil, pools=())
            gang = named("unharmed")
            submitted = await asyncio.to_thread(
                moorings,
                *("submit", "-f", "-", "--wait"),
                home=home,
                stdin=yaml.safe_dump(gang),
            )
            assert submitted.returncode == 0, submitted.stderr
            await client.bus.publish(Outgoing.of(topics.INVENTORIES, gone))

    asyncio.run(announce())
    released = moorings("release", "unharmed", home=home)
    assert released.returncode == 0, released.stderr
    log = (home / "moorings" / "solver.log").read_text()
    assert "pools[gpu.vendor.example/evil]" in log
