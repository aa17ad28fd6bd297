"""What preparing leaves on the disk, and who is refused."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, ClaimUID, Namespace
from nodeagent.errors import PrepareError
from nodeagent.sources.source import PartitionHooks
from tests.builders.prepared import (
    Bench,
    allocated,
    asked,
    config,
    make_preparer,
    parameters,
    result,
)

A, B = asked("a"), asked("b")
SOURCE = Bench("gpu-0", "gpu-1", "plain-0")


def names(folder: Path) -> list[str]:
    """What is in a folder, but the lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


async def test_a_prepared_claim_has_a_record_and_a_cdi_file(tmp_path: Path) -> None:
    """Readable by their owner and its group at most; gone once it is unprepared."""
    configs = (config(parameters(env={"MODE": "x"})),)
    claims = {"a": allocated(A, result("gpu-0"), result("gpu-1"), configs=configs)}
    preparer = make_preparer(tmp_path, SOURCE, claims)
    prepared = await preparer.prepare(A)
    file = tmp_path / "cdi" / "gpu.example.com-claim_uid-a.json"
    record = tmp_path / "claims" / "uid-a.json"
    spec = json.loads(file.read_text())
    assert {
        device["name"]: device["containerEdits"]["env"] for device in spec["devices"]
    } == {
        prepared.devices[0].cdi_name: ["DEVICE_0=gpu-0", "MODE=x"],
        prepared.devices[1].cdi_name: ["DEVICE_1=gpu-1", "MODE=x"],
    }
    assert file.stat().st_mode & 0o777 == 0o640
    assert record.stat().st_mode & 0o777 == 0o600
    assert preparer.checkpoint.claims == {A.uid: prepared}
    await preparer.unprepare(A)
    assert names(tmp_path / "cdi") == names(tmp_path / "claims") == []
    assert preparer.checkpoint.claims == {}


async def test_both_calls_may_come_again(tmp_path: Path) -> None:
    """With the same answer, also at once and for what was never prepared."""
    preparer = make_preparer(tmp_path, SOURCE, {"a": allocated(A, result("gpu-0"))})
    answers = await asyncio.gather(*(preparer.prepare(A) for _ in range(5)))
    assert len(set(map(repr, answers))) == 1
    await asyncio.gather(*(preparer.unprepare(A) for _ in range(5)))
    await preparer.unprepare(B)
    assert names(tmp_path / "claims") == []


async def test_a_device_that_another_live_claim_holds_is_refused(
    tmp_path: Path,
) -> None:
    """Also of two that ask at once; and given once the other is unprepared."""
    claims = {"a": allocated(A, result("gpu-0")), "b": allocated(B, result("gpu-0"))}
    preparer = make_preparer(tmp_path, SOURCE, claims)
    answers = await asyncio.gather(
        preparer.prepare(A), preparer.prepare(B), return_exceptions=True
    )
    refused = [error for error in answers if isinstance(error, PrepareError)]
    (holder,) = preparer.checkpoint.claims.values()
    said = f"is prepared for ResourceClaim {holder.claim} (uid {holder.claim.uid})"
    assert [said in str(error) for error in refused] == [True]
    assert names(tmp_path / "claims") == [f"{holder.claim.uid}.json"]
    await preparer.unprepare(holder.claim)
    await preparer.prepare(B if holder.claim == A else A)


async def test_shares_and_admin_access_do_not_exclude(tmp_path: Path) -> None:
    """A share bears other shares, and admin access bears everything."""
    c = asked("c")
    claims = {
        "a": allocated(A, result("gpu-0", share_id="s-1")),
        "b": allocated(B, result("gpu-0", share_id="s-2")),
        "c": allocated(c, result("gpu-0", admin_access=True)),
    }
    preparer = make_preparer(tmp_path, SOURCE, claims)
    for claim in (A, B, c):
        await preparer.prepare(claim)
    d = asked("d")
    claims["d"] = allocated(d, result("gpu-0"))
    with pytest.raises(PrepareError, match="is prepared for"):
        await preparer.prepare(d)


async def test_another_process_sees_what_was_prepared_since_its_start(
    tmp_path: Path,
) -> None:
    """While a new agent replaces an old one, either may be asked."""
    claims = {"a": allocated(A, result("gpu-0")), "b": allocated(B, result("gpu-0"))}
    older = make_preparer(tmp_path, SOURCE, claims)
    newer = make_preparer(tmp_path, SOURCE, claims)
    await newer.prepare(A)
    with pytest.raises(PrepareError, match="is prepared for"):
        await older.prepare(B)
    await older.unprepare(A)
    await newer.prepare(B)


@pytest.mark.parametrize(
    ("claim", "of", "said"),
    [
        (allocated(A, result("gpu-9")), A, "node 'n-0' does not have device"),
        (
            allocated(asked("a", "other"), result("gpu-0")),
            A,
            "has uid 'other', not 'uid-a': it was deleted",
        ),
        (ResourceClaim(metadata=allocated(A).metadata), A, "is not allocated"),
        (allocated(A, result("gpu-0"), node="n-1"), A, "is allocated on node 'n-1'"),
        (
            allocated(A, result("gpu-0", driver="other.com")),
            A,
            "holds no device of gpu.example.com",
        ),
        (allocated(A, result("gpu-0"), result("gpu-0")), A, "gpu-0 twice"),
        (allocated(A, result("../gpu")), A, "'../gpu' is not a device name"),
        (
            allocated(A, result("gpu-0"), configs=(config({"kind": "x"}),)),
            A,
            "config.0..opaque.parameters: must be DeviceParameters",
        ),
        (
            allocated(A, result("gpu-0")),
            asked("a", "../../etc/passwd"),
            "claim uid '../../etc/passwd' is no uid",
        ),
        (
            allocated(A, result("gpu-0")),
            ClaimRef(Namespace("../x"), "a", ClaimUID("u")),
            "claim namespace '../x'",
        ),
    ],
)
async def test_what_is_not_right_is_refused_in_words(
    tmp_path: Path, claim: ResourceClaim, of: ClaimRef, said: str
) -> None:
    """And leaves nothing behind."""
    preparer = make_preparer(tmp_path, SOURCE, {"a": claim})
    with pytest.raises(PrepareError, match=said):
        await preparer.prepare(of)
    assert names(tmp_path / "claims") == names(tmp_path / "cdi") == []


async def test_a_device_without_edits_needs_no_cdi_file(tmp_path: Path) -> None:
    """Runtimes refuse a device that edits nothing."""
    preparer = make_preparer(tmp_path, SOURCE, {"a": allocated(A, result("plain-0"))})
    prepared = await preparer.prepare(A)
    assert prepared.devices[0].cdi_name == ""
    assert names(tmp_path / "cdi") == []


async def test_a_full_disk_refuses_and_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim, and not the agent; later it is prepared."""
    preparer = make_preparer(tmp_path, SOURCE, {"a": allocated(A, result("gpu-0"))})

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            await preparer.prepare(A)
    assert names(tmp_path / "claims") == []
    await preparer.prepare(A)


@pytest.mark.parametrize("torn", [b"", b'{"version":1,"check', b'{"version":9}'])
async def test_a_torn_record_is_built_anew_from_the_cdi_file(
    tmp_path: Path, torn: bytes
) -> None:
    """So that the device is still held, and is unprepared as any other."""
    claims = {"a": allocated(A, result("gpu-0")), "b": allocated(B, result("gpu-0"))}
    prepared = await make_preparer(tmp_path, SOURCE, claims).prepare(A)
    (tmp_path / "claims" / "uid-a.json").write_bytes(torn)
    again = make_preparer(tmp_path, SOURCE, claims)
    assert again.checkpoint.claims == {A.uid: prepared}
    with pytest.raises(PrepareError, match="is prepared for"):
        await again.prepare(B)
    await again.unprepare(A)
    assert names(tmp_path / "claims") == names(tmp_path / "cdi") == []


async def test_a_lost_record_is_built_anew_and_both_lost_is_prepared_again(
    tmp_path: Path,
) -> None:
    """As kubelet asks again for what it was not answered."""
    claims = {"a": allocated(A, result("gpu-0"))}
    await make_preparer(tmp_path, SOURCE, claims).prepare(A)
    (tmp_path / "claims" / "uid-a.json").unlink()
    assert A.uid in make_preparer(tmp_path, SOURCE, claims).checkpoint.claims
    (tmp_path / "claims" / "uid-a.json").write_bytes(b"torn")
    (tmp_path / "cdi" / "gpu.example.com-claim_uid-a.json").write_bytes(b"torn")
    again = make_preparer(tmp_path, SOURCE, claims)
    assert again.checkpoint.claims == {}
    await again.prepare(A)
    assert list(again.checkpoint.claims) == [A.uid]


async def test_a_name_that_is_another_card_now_is_refused(tmp_path: Path) -> None:
    """A boot may number cards otherwise; the pod was given the one that it had."""
    claims = {"a": allocated(A, result("gpu-1"))}
    source = Bench("gpu-1")
    source.cards = {"gpu-1": "GPU-aaa"}
    await make_preparer(tmp_path, source, claims).prepare(A)
    again = make_preparer(tmp_path, source, claims)
    source.cards = {}  # not known for a moment
    assert (await again.prepare(A)).devices[0].card == "GPU-aaa"
    source.cards = {"gpu-1": "GPU-bbb"}
    with pytest.raises(PrepareError, match=r"gpu-1 was GPU-aaa .* and is GPU-bbb now"):
        await again.prepare(A)
    await again.unprepare(A)
    assert (await again.prepare(A)).devices[0].card == "GPU-bbb"


async def test_a_card_is_not_given_out_under_a_second_name(tmp_path: Path) -> None:
    """A container runs on it; partitions of one card are no second name."""
    claims = {"a": allocated(A, result("gpu-1")), "b": allocated(B, result("gpu-0"))}
    source = Bench("gpu-0", "gpu-1")
    source.cards = {"gpu-0": "GPU-aaa", "gpu-1": "GPU-aaa"}
    preparer = make_preparer(tmp_path, source, claims)
    await preparer.prepare(A)
    await preparer.prepare(B)
    await preparer.unprepare(B)
    source.cards = {"gpu-0": "GPU-aaa", "gpu-1": "GPU-bbb"}
    with pytest.raises(PrepareError, match=r"GPU-aaa is prepared for .* as n-0/gpu-1"):
        await preparer.prepare(B)
    await preparer.unprepare(A)
    await preparer.prepare(B)


def hook(folder: Path, name: str, text: str) -> tuple[str, ...]:
    """A program of one line of shell; gives its command."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return (str(path),)


async def test_hooks_set_a_device_up_and_tear_it_down(tmp_path: Path) -> None:
    """Each is told claim, device and parameters as JSON."""
    hooks = PartitionHooks(
        set_up=hook(tmp_path, "up", f"cat > {tmp_path}/told"),
        tear_down=hook(tmp_path, "down", f"rm {tmp_path}/told"),
    )
    configs = (
        config(parameters(partition={"size": 1, "mode": "a"}), "FromClaim"),
        config(parameters(partition={"size": 2, "kept": True}), "FromClass"),
    )
    claims = {"a": allocated(A, result("gpu-0"), configs=configs)}
    preparer = make_preparer(tmp_path, Bench("gpu-0", hooks=hooks), claims)
    await preparer.prepare(A)
    told = json.loads((tmp_path / "told").read_text())
    assert told["claim"] == {"namespace": "default", "name": "a", "uid": "uid-a"}
    assert told["device"] == "gpu-0"
    assert told["parameters"] == {"size": 1, "mode": "a", "kept": True}
    await preparer.unprepare(A)
    assert not (tmp_path / "told").exists()


async def test_a_hook_gets_none_of_our_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent has its password for the bus there."""
    monkeypatch.setenv("NODEAGENT_NATS_PASSWORD", "secret")
    command = hook(tmp_path, "up", f"env > {tmp_path}/env; pwd >> {tmp_path}/env")
    source = Bench("gpu-0", hooks=PartitionHooks(set_up=command))
    await make_preparer(tmp_path, source, {"a": allocated(A, result("gpu-0"))}).prepare(
        A
    )
    said = (tmp_path / "env").read_text()
    assert "secret" not in said
    assert said.endswith("\n/\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [("echo broken >&2; exit 3", "exit code 3: broken"), ("sleep 60", "took over")],
)
async def test_a_hook_that_fails_refuses_and_keeps_the_device_held(
    tmp_path: Path, text: str, said: str
) -> None:
    """It may have done half of its work: kubelet asks again, or unprepares."""
    command = hook(tmp_path, "up", text)
    source = Bench("gpu-0", hooks=PartitionHooks(set_up=command, limit_s=0.5))
    preparer = make_preparer(tmp_path, source, {"a": allocated(A, result("gpu-0"))})
    with pytest.raises(PrepareError, match=said):
        await preparer.prepare(A)
    assert list(preparer.checkpoint.claims) == [A.uid]
    assert names(tmp_path / "cdi") == []
    await preparer.unprepare(A)
    assert names(tmp_path / "claims") == []


def kind_and_mode(path: Path) -> tuple[str, int]:
    """Read what a metadata file is, and who may read it."""
    newest, _ = path.read_text().splitlines()
    return json.loads(newest)["kind"], path.stat().st_mode & 0o777


async def test_containers_read_of_their_devices_if_that_is_wanted(
    tmp_path: Path,
) -> None:
    """Once a request, with its first device, also if that needs nothing else."""
    claim = allocated(A, result("plain-0"), result("gpu-0"), result("gpu-1", "other"))
    folder = tmp_path / "metadata"
    preparer = make_preparer(tmp_path, SOURCE, {"a": claim}, tells_metadata=True)
    prepared = await preparer.prepare(A)
    (file,) = (tmp_path / "cdi").iterdir()
    mounts = {
        device["name"]: device["containerEdits"].get("mounts", [])
        for device in json.loads(file.read_text())["devices"]
    }
    plain, second, other = (device.cdi_name for device in prepared.devices)
    assert mounts[second] == []
    for name, request in ((plain, "gpu"), (other, "other")):
        (mount,) = mounts[name]
        path = Path(mount["hostPath"])
        assert path == folder / A.uid / f"{request}.json"
        assert mount["options"] == ["ro", "bind"]
        assert kind_and_mode(path) == ("DeviceMetadata", 0o644)
    assert await preparer.prepare(A) == prepared
    # Also by an agent that is told to write no more of them.
    await make_preparer(tmp_path, SOURCE, {"a": claim}).unprepare(A)
    assert names(folder) == []
