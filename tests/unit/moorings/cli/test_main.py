"""The executable as a process: what it says when it ends, and that it ends at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys
from moorings.cli.main import main

class Large:
    def __del__(self):
        print("given back object by object")

large = Large()
atexit.register(print, "at exit")
sys.argv = ["moorings", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("arguments", "code"), [(["version"], 0), (["plan", "-f", "missing.yaml"], 3)]
)
def test_it_ends_with_all_that_it_said_and_without_clearing_up(
    arguments: list[str], code: int
) -> None:
    """What was to be done at exit is done, then memory goes back as a whole."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == code
    assert ended.stdout.endswith("at exit\n")
    assert ("ortools" in ended.stdout) == (code == 0)
    assert ("missing.yaml" in ended.stderr) == (code == 3)
    assert "given back" not in ended.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_it_ends_well_where_it_has_no_output(closed: str) -> None:
    """As a service manager, or a script, may start it."""
    program = ["-c", PROGRAM.replace("large = Large()", ""), "version"]
    ended = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["version"],
        ["--help"],
        ["nocmd"],
        ["plan"],
        ["plan", "-f", "missing.yaml"],
        ["replay", "missing.moorings"],
    ],
)
def test_a_reader_that_goes_away_is_no_answer(arguments: list[str]) -> None:
    """Not 1 either, which is a no; shells count SIGPIPE so."""
    script = (
        "import os, sys\nfrom moorings.cli.main import main\n"
        f"sys.argv = ['moorings', *{arguments}]\n"
        "read, write = os.pipe()\nos.close(read)\n"
        "os.dup2(write, 1)\nos.dup2(write, 2)\nmain()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert ended.returncode == 141


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["--version"], 0, "moorings 0"),
        (["status"], 2, "use `moorings get`"),
        (["describe", "node"], 2, "`moorings get nodes` lists"),
        (["plan", "gang.yaml"], 2, "give files with -f FILE"),
        (["replay", "x.moorings"], 3, "x.moorings: there is no such file"),
        (["get", "-s", "foo://x"], 3, "addresses of NATS begin with nats://"),
        (["watch", "--kind", "Foo"], 2, "the kinds are AllocationLost, "),
    ],
)
def test_habits_and_slips_are_answered(line: list[str], code: int, words: str) -> None:
    """With what is meant here, not with a word that nobody can look up."""
    program = "from moorings.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, *line],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    said = " ".join((ended.stdout + ended.stderr).split())
    assert (ended.returncode, words in said) == (code, True), said


def test_a_missing_extra_is_named() -> None:
    """Who installed the command line alone is told what brings the solver."""
    hidden = PROGRAM.replace("large = Large()", "sys.modules['ortools'] = None")
    example = "docs/examples/gpu-nic-workers.yaml"
    ended = subprocess.run(
        [sys.executable, "-c", hidden, "plan", "-f", example],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 3
    assert "is missing: pip install 'moorings[solver]'" in ended.stderr
