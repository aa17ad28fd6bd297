"""An executable is run once, within limits, and nothing of it is left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nodeagent.errors import SourceError
from nodeagent.sources.command.process import MAX_ANSWER_BYTES, run_command


async def run(script: str, limit_s: float = 30.0) -> bytes:
    command = ("/bin/sh", "-c", script)
    return await run_command("test", command, {"MOORINGS_NODE": "n"}, limit_s)


async def test_a_command_gets_a_small_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the agent's own, such as its passwords."""
    monkeypatch.setenv("NODEAGENT_BUS_PASSWORD_FILE", "/etc/x")
    lines = (await run("env; pwd")).decode().split()
    assert {line.partition("=")[0] for line in lines} <= {
        "PATH",
        "LANG",
        "MOORINGS_NODE",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "/",
    }
    assert "MOORINGS_NODE=n" in lines


async def test_a_command_that_fails_is_named_with_its_last_words() -> None:
    """The exit code alone would help nobody."""
    with pytest.raises(SourceError, match="ends with exit code 3: no such bus"):
        await run("echo hello; echo no such bus >&2; exit 3")


async def test_what_cannot_be_started_is_named() -> None:
    """A path that is not there ends no agent."""
    with pytest.raises(SourceError, match="cannot be started"):
        await run_command("test", ("/no/such/program",), {}, 5.0)


async def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """Also those that it put into the background and that hold its output open."""
    pids = tmp_path / "pids"
    with pytest.raises(SourceError, match=r"has not ended after 0.5 s"):
        await run(f"sleep 600 & echo $! $$ >{pids}; wait", 0.5)
    all_gone(pids)


async def test_what_a_command_leaves_behind_is_killed(tmp_path: Path) -> None:
    """Its answer counts all the same."""
    pids = tmp_path / "pids"
    script = f"sleep 600 >/dev/null 2>&1 & echo $! >{pids}; echo fine"
    assert await run(script) == b"fine\n"
    all_gone(pids)


async def test_a_command_that_writes_without_end_is_stopped() -> None:
    """What is said beside the answer is cut off instead."""
    with pytest.raises(SourceError, match=f"over {MAX_ANSWER_BYTES} bytes"):
        await run("head -c 3000000 /dev/zero")
    with pytest.raises(SourceError, match="has not ended"):
        await run("cat /dev/zero", 0.5)
    answer = await run("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo fine")
    assert answer == b"fine\n"


def all_gone(pids: Path) -> None:
    """Wait until none of these processes runs any more."""
    for pid in pids.read_text().split():
        stat = Path("/proc") / pid / "stat"
        for _ in range(500):
            # Killed ones may stay as zombies until whoever adopted them looks.
            try:
                if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                    break
            except OSError:
                break
            time.sleep(0.02)
        else:
            pytest.fail(f"process {pid} is still there")
