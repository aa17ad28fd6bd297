"""Whoever breaks out of a selector finds nothing: tried inside the real sandbox.

Its process is the real one; only the engine is replaced, by one that runs the
"expression" as Python, as code would that has taken the process over.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from solver.cel.sandbox import Sandbox
from solver.cel.wire import Confinement
from tests.builders import device

TAKEN_OVER = """
import builtins, errno, os, socket, subprocess, sys
from solver.cel import confinement, engine
from solver.selectors.table import Verdict

def is_open(fd):
    try:
        os.lseek(fd, 0, os.SEEK_CUR)
    except OSError as error:
        return error.errno != errno.EBADF
    return True

def evaluate(self, expression, driver, device):
    try:
        return Verdict(error=repr(eval(expression)))
    except BaseException as error:
        return Verdict(error=type(error).__name__)

engine.Engine.evaluate = evaluate
"""
WITHOUT_LANDLOCK = "confinement.forbid_files = lambda: 0\n"
WITHOUT_SECCOMP = "confinement.forbid_system_calls = lambda: False\n"
LETS_IN = "what the bus lets in"
IS_ROOT = os.getuid() == 0
"""Whom the limit on processes does not bind."""


@pytest.fixture
def password(tmp_path: Path) -> Path:
    """A file like the one that a service reads its password from."""
    path = tmp_path / "password"
    path.write_text(LETS_IN)
    return path


@pytest.fixture
def taken(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sandbox]:
    """A sandbox whose engine is taken over; the parameter is what the kernel lacks."""
    folder = tmp_path / "path"
    folder.mkdir()
    lacks = getattr(request, "param", "")
    (folder / "sitecustomize.py").write_text(TAKEN_OVER + lacks)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("SECRET", LETS_IN)
    sandbox = Sandbox()
    yield sandbox
    sandbox.close()


def run(sandbox: Sandbox, code: str) -> str:
    """Run code inside; gives what it gives, or the name of its exception."""
    (verdict,) = sandbox.evaluate(code, [("driver", device())])
    return verdict.error


def files(password: Path) -> list[str]:
    """List code that reads or writes files."""
    return [
        "open('/etc/passwd').read()",
        f"open({str(password)!r}).read()",
        f"open({str(password)!r}, 'w')",
        "os.listdir('/')",
        "open(f'/proc/{os.getppid()}/environ').read()",
        "os.memfd_create('x')",
    ]


def test_what_breaks_out_runs_at_all(taken: Sandbox) -> None:
    """Else all that follows would be refused for another reason."""
    assert run(taken, "1 + 1") == "2"
    assert taken.wait_ready().seccomp
    assert taken.wait_ready().landlock


def test_no_file_is_opened(taken: Sandbox, password: Path) -> None:
    for code in files(password):
        assert run(taken, code) == "PermissionError", code


def test_nobody_is_connected_to(taken: Sandbox) -> None:
    """Neither the bus, nor anything else, on this machine or another."""
    for code in (
        "socket.socket(socket.AF_INET).connect(('127.0.0.1', 4222))",
        "socket.socket(socket.AF_INET6)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
    ):
        assert run(taken, code) == "PermissionError", code


def test_no_process_is_started_or_ended(taken: Sandbox) -> None:
    for code in (
        "os.fork()",
        "subprocess.run(['/bin/true'])",
        "os.execv('/bin/true', ['true'])",
        "os.kill(os.getppid(), 9)",
        "os.kill(os.getpid(), 9)",
    ):
        assert run(taken, code) == "PermissionError", code


def test_nothing_of_the_service_is_inherited(taken: Sandbox) -> None:
    """Neither its variables, nor its open files: its own connection is the fourth."""
    assert LETS_IN not in run(taken, "dict(os.environ)")
    assert run(taken, "sum(map(is_open, range(256)))") == "4"


def test_what_one_expression_changes_no_other_sees(taken: Sandbox) -> None:
    """Each has memory of its own, so none forges another's verdicts."""
    assert run(taken, "setattr(builtins, 'leaked', 1) or builtins.leaked") == "1"
    assert run(taken, "hasattr(builtins, 'leaked')") == "False"


def test_who_answers_more_than_asked_answers_for_nobody_else(taken: Sandbox) -> None:
    """Replies that nobody asked for go with their own connection."""
    forged = b'{"verdict":{"value":true}}'
    written = len(forged).to_bytes(4, "big") + forged
    code = f"[os.write(fd, {written!r}) for fd in range(3, 256) if is_open(fd)]"
    assert run(taken, code) != "PermissionError"
    assert run(taken, "'an honest answer'") == "'an honest answer'"


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (WITHOUT_LANDLOCK, (True, False)),
        (WITHOUT_SECCOMP, (False, True)),
        (WITHOUT_LANDLOCK + WITHOUT_SECCOMP, (False, False)),
    ],
    indirect=["taken"],
)
def test_a_kernel_that_lacks_some_is_told_of_and_the_rest_holds(
    taken: Sandbox, said: tuple[bool, bool], password: Path
) -> None:
    """Files and network are refused by the limits of any Unix."""
    bounds: Confinement = taken.wait_ready()
    assert (bounds.seccomp, bool(bounds.landlock)) == said
    sockets = ["socket.socket()", "socket.socketpair()"]
    for code in files(password) + sockets:
        assert run(taken, code) in {"PermissionError", "OSError"}, code
    if bounds.seccomp or not IS_ROOT:
        assert run(taken, "os.fork()") in {"PermissionError", "BlockingIOError"}


def test_who_counts_losses_is_told_of_each() -> None:
    """Also when the process of an expression is killed from outside."""
    losses: list[None] = []
    sandbox = Sandbox(on_loss=lambda: losses.append(None))
    try:
        sandbox.evaluate("true", [("driver", device())])
        assert not losses
        pid = sandbox.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        (verdict,) = sandbox.evaluate("true", [("driver", device())])
        assert verdict.value is True
        assert len(losses) == 1
    finally:
        sandbox.close()
