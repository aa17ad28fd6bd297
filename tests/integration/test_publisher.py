"""The publisher on a real bus and a real folder: write, confirm, restart, release."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from contracts import topics
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace
from contracts.messages import (
    AllocationRefused,
    AllocationWritten,
    ClaimsReleased,
    DecisionMessage,
    ObjectObserved,
    SubmitGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests import builders
from tests.builders import decisions
from tests.builders.decisions import CLUSTER
from tests.lab import small_disk
from tests.lab.nats_server import LabServer
from tests.lab.publishing import confirmations, confirmed, manifests, publisher

NAMESPACE = Namespace(builders.NAMESPACE)
WAIT_S = 60.0


async def submit(bus: Bus, gang: Gang, uid: str = builders.UID) -> None:
    message = SubmitGang(cluster=CLUSTER, uid=GangUID(uid), gang=gang)
    await bus.publish(Outgoing.of(topics.SUBMISSIONS, message))


async def decide(bus: Bus, decision: DecisionMessage) -> None:
    await bus.publish(Outgoing.of(topics.DECISIONS, decision))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something that happens in files has happened."""
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 # files tell nobody
            await asyncio.sleep(0.002)


def written(attempt: int = 1, uid: str = builders.UID) -> AllocationWritten:
    return AllocationWritten(
        cluster=CLUSTER, namespace=NAMESPACE, uid=GangUID(uid), attempt=attempt
    )


def pods(count: int) -> Gang:
    return builders.gang(builders.member(count=count))


async def test_allocation_is_written_then_confirmed_then_released(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    async with publisher(nats_server, folder):
        await submit(bus, pods(3))
        await decide(bus, decisions.gang_allocated(pods=3))
        await confirmed(bus, written())
        found = manifests(folder)
        assert list(found) == [f"train-worker-{index}-gpus.json" for index in range(3)]
        for index, body in enumerate(found.values()):
            (result,) = body["status"]["allocation"]["devices"]["results"]
            assert result["device"] == f"gpu-{index}"
            assert body["spec"]["devices"]["requests"][0]["name"] == "gpu"
        await decide(bus, decisions.gang_released())
        await confirmed(bus, ClaimsReleased)
        assert manifests(folder) == {}


async def test_restart_completes_what_is_missing_and_repeats_nothing(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    await submit(bus, pods(4))
    await submit(bus, pods(1), uid="second")
    async with publisher(nats_server, folder):
        await decide(bus, decisions.gang_allocated(pods=4))
        await confirmed(bus, written())
    files = sorted((folder / "resourceclaims").rglob("*.json"))
    files[0].unlink()
    files[1].write_bytes(b'{"kind": "Resou')
    untouched = (files[2].stat().st_ino, files[2].stat().st_mtime_ns)
    second = decisions.member_allocated(gang="other")
    await decide(bus, decisions.gang_allocated(second, name="other", uid="second"))
    async with publisher(nats_server, folder):
        await confirmed(bus, written(uid="second"), uid="second")
        await until(lambda: len(manifests(folder)) == 5)
    assert (files[2].stat().st_ino, files[2].stat().st_mtime_ns) == untouched
    assert files[1].with_name(files[1].name + ".damaged").exists()
    assert await confirmations(bus) == [written(), written(uid="second")]


async def test_new_attempt_replaces_and_pending_removes(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    await submit(bus, pods(2))
    async with publisher(nats_server, folder):
        await decide(bus, decisions.gang_allocated(pods=2))
        await confirmed(bus, written())
        member = decisions.member_allocated(device="gpu-7")
        await decide(bus, decisions.gang_allocated(member, attempt=2))
        await confirmed(bus, written(attempt=2))
        (body,) = manifests(folder).values()
        (result,) = body["status"]["allocation"]["devices"]["results"]
        assert result["device"] == "gpu-7"
        await decide(bus, decisions.gang_pending())
        await until(lambda: not manifests(folder))
    assert await confirmations(bus) == [written(), written(attempt=2)]


async def test_malformed_decisions_are_refused_and_the_service_goes_on(
    bus: Bus, nats_server: LabServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "manifests"
    await submit(bus, pods(1))
    async with publisher(nats_server, folder):
        for uid, data in {
            "no-json": b"{",
            "no-decision": b'{"type": "GangAllocated"}',
            "another": topics.DECISIONS.codec.encode(decisions.gang_allocated()),
        }.items():
            subject = topics.DECISIONS.subject(CLUSTER, NAMESPACE, GangUID(uid))
            await bus.publish(Outgoing(subject=subject, data=data))
        await decide(bus, decisions.gang_allocated())
        await confirmed(bus, written())
    assert len(manifests(folder)) == 1
    assert capsys.readouterr().out.count("message.refused") == 3


async def test_decision_that_kubernetes_would_refuse_is_void(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    await submit(bus, pods(2))
    async with publisher(nats_server, folder):
        await decide(bus, decisions.gang_allocated(pods=2))
        await confirmed(bus, written())
        bad = decisions.member_allocated(claim="disks")
        await decide(bus, decisions.gang_allocated(bad, attempt=2))
        refused = await confirmed(bus, AllocationRefused)
    assert isinstance(refused, AllocationRefused)
    assert refused.attempt == 2
    assert "no claim worker/disks" in refused.reason
    assert manifests(folder) == {}


async def test_failing_disk_voids_one_gang_and_leaves_nothing_of_it(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    blocked = folder / "resourceclaims" / NAMESPACE / "train-worker-1-gpus.json"
    (blocked / "in-the-way").mkdir(parents=True)
    await submit(bus, pods(2))
    await submit(bus, pods(1), uid="second")
    async with publisher(nats_server, folder, write_budget_s=0.5, workers=2):
        await decide(bus, decisions.gang_allocated(pods=2))
        second = decisions.member_allocated(gang="other")
        await decide(bus, decisions.gang_allocated(second, name="other", uid="second"))
        await confirmed(bus, written(uid="second"), uid="second")
        refused = await confirmed(bus, AllocationRefused)
    assert isinstance(refused, AllocationRefused)
    assert "train-worker-1-gpus.json" in refused.reason
    (blocked / "in-the-way").rmdir()
    blocked.rmdir()
    assert list(manifests(folder)) == ["other-worker-0-gpus.json"]


async def test_growth_that_cannot_be_written_leaves_the_gang_as_it_was(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Another gang has the claim of the new pod; a restart changes nothing."""
    folder = tmp_path / "manifests"
    first = decisions.gang_allocated(pods=1)
    one, two = decisions.gang_allocated(pods=2).members
    await submit(bus, pods(3))
    await submit(bus, pods(1), uid="second")
    async with publisher(nats_server, folder):
        await decide(bus, first)
        await confirmed(bus, written())
        await decide(bus, decisions.gang_allocated(two, uid="second"))
        await confirmed(bus, AllocationWritten, uid="second")
        before = manifests(folder)
        grown = replace(first, attempt=2, members=(one, two), kept={"worker": 1})
        await decide(bus, grown)
        refused = await confirmed(bus, AllocationRefused)
        assert isinstance(refused, AllocationRefused)
        assert (refused.attempt, refused.keeps) == (2, True)
        assert "already allocated" in refused.reason
    async with publisher(nats_server, folder):
        await decide(bus, decisions.gang_released("second"))
        await confirmed(bus, ClaimsReleased, uid="second")
    ours = [message for message in await confirmations(bus) if message.uid != "second"]
    assert ours == [written(), refused]
    name = "train-worker-0-gpus.json"
    assert list(found := manifests(folder)) == [name]
    assert found[name]["status"] == before[name]["status"]


@pytest.mark.skipif(bool(small_disk.why_not()), reason=small_disk.why_not())
async def test_growth_on_a_full_disk_takes_nothing_from_what_runs(
    bus: Bus, nats_server: LabServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does a restart; what cannot be as it was is tried until there is room."""
    first = decisions.gang_allocated(pods=2)
    members = decisions.gang_allocated(pods=3).members
    grown = replace(first, attempt=2, members=members, kept={"worker": 2})
    await submit(bus, pods(3))
    await submit(bus, pods(1), uid="second")
    second = decisions.member_allocated(gang="other")
    with small_disk.small_disk(tmp_path / "disk") as disk:
        folder = tmp_path / "disk" / "manifests"
        run = partial(publisher, nats_server, folder, write_budget_s=0.5, workers=1)
        async with run():
            await decide(bus, decisions.gang_allocated(second, uid="second"))
            await decide(bus, first)
            await confirmed(bus, written())
            before = manifests(folder)
            disk.fill()
            await decide(bus, grown)
            refused = await confirmed(bus, AllocationRefused)
            assert isinstance(refused, AllocationRefused)
            assert (refused.attempt, refused.keeps) == (2, True)
            assert "No space left on device" in refused.reason
            assert manifests(folder) == before

        # With one worker the gang was looked at when the one after it is released.
        async with run():
            await decide(bus, decisions.gang_released("second"))
            await confirmed(bus, ClaimsReleased, uid="second")
            del before["other-worker-0-gpus.json"]
            assert manifests(folder) == before

        # One of its claims is lost as well, so it is not as it was.
        lost = next(folder.rglob("train-worker-1-gpus.json"))
        lost.unlink()
        disk.fill()
        capsys.readouterr()
        async with run():
            await decide(bus, replace(grown, attempt=3))
            await until(lambda: "gang.delayed" in capsys.readouterr().out)
            assert list(manifests(folder)) == ["train-worker-0-gpus.json"]
            disk.make_room()
            await confirmed(bus, written(attempt=3))
            assert len(manifests(folder)) == 3
    ours = [message for message in await confirmations(bus) if message.uid != "second"]
    assert ours == [written(), refused, written(attempt=3)]


async def test_template_on_the_bus_gives_the_spec(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    name = f"{NAMESPACE}/template-1"
    state = ObjectObserved(
        cluster=CLUSTER,
        kind="ResourceClaimTemplate",
        key=name,
        object={
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "template-1", "namespace": NAMESPACE},
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
                        ]
                    }
                }
            },
        },
    )
    subject = topics.STATE.subject(CLUSTER, "ResourceClaimTemplate", name)
    await bus.publish(Outgoing(subject=subject, data=topics.STATE.codec.encode(state)))
    claim = builders.member_claim(template="template-1")
    await submit(bus, builders.gang(builders.member(claim)))
    async with publisher(nats_server, folder):
        await decide(bus, decisions.gang_allocated())
        await confirmed(bus, written())
    (body,) = manifests(folder).values()
    (request,) = body["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu"


async def test_killed_publisher_leaves_gangs_that_the_next_one_completes(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Kill -9 at arbitrary moments; in the end every gang is whole and confirmed."""
    folder = tmp_path / "manifests"
    uids = [f"gang-{index}" for index in range(24)]
    for uid in uids:
        await submit(bus, pods(16), uid=uid)
        members = [
            decisions.member_allocated(gang=uid, index=index) for index in range(16)
        ]
        await decide(bus, decisions.gang_allocated(*members, name=uid, uid=uid))
    environ = {
        **os.environ,
        "PUBLISHER_CLUSTER": CLUSTER,
        "PUBLISHER_SERVERS": nats_server.url,
        "PUBLISHER_FOLDER": str(folder),
        "PUBLISHER_WORKERS": "2",
    }
    command = [sys.executable, "-m", "publisher"]
    for files in (1, 100, 200, 300):
        process = await asyncio.create_subprocess_exec(
            *command, env=environ, stdout=subprocess.DEVNULL
        )
        await until(lambda: len(list(folder.rglob("*.json"))) >= files)  # noqa: B023 # awaited inside the loop
        process.send_signal(signal.SIGKILL)
        await process.wait()
    async with publisher(nats_server, folder):
        for uid in uids:
            await confirmed(bus, written(uid=uid), uid=uid)
    found = manifests(folder)
    assert len(found) == 24 * 16
    assert all("allocation" in body["status"] for body in found.values())
    assert not list(folder.rglob("*.tmp"))


async def test_gang_of_512_pods_is_written_whole(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    await submit(bus, pods(512))
    async with publisher(nats_server, folder, publish_slices=False):
        await decide(bus, decisions.gang_allocated(pods=512))
        await confirmed(bus, written())
        assert len(manifests(folder)) == 512


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "(and PUBLISHER_FOLDER is not set)"),
        (
            {"PUBLISHER_KUBECONFIG": "/nowhere"},
            "PUBLISHER_KUBECONFIG: kubeconfig /nowhere",
        ),
        ({"PUBLISHER_FOLDR": "x", "PUBLISHER_FOLDER": "x"}, "PUBLISHER_FOLDR"),
        ({"PUBLISHER_FOLDER": "/dev/null/x"}, "PUBLISHER_FOLDER: /dev/null/x"),
        ({"PUBLISHER_OWNED_NODES": "gpu"}, "PUBLISHER_OWNED_NODES"),
        ({"PUBLISHER_OWNED_DRIVERS": "a.com,B"}, "PUBLISHER_OWNED_DRIVERS"),
    ],
)
def test_wrong_configuration_is_said_without_a_traceback(
    variables: dict[str, str], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "publisher"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
