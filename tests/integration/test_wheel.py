"""`pip install moorings` in an empty environment: the wheel is all there is of us.

What the wheel needs is linked from this environment, by the metadata of the packages
that the extra `console` names; what no extra names is missing. `make soak` installs
with pip alone, from wheels that it downloads, and weighs the result.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.lab import image
from tests.lab.environment import Environment

EXAMPLE = image.ROOT / "docs" / "examples" / "gpu-nic-workers.yaml"
PACKAGES = ("contracts", "runtime", "moorings", *image.SERVICES)
COMMANDS = {
    ("--version",): "moorings 0.1.0",
    ("plan", "-f", str(EXAMPLE)): "Optimal: 1 allocated",
    ("lint", "-f", str(EXAMPLE)): "",
    ("doctor", "--help"): "Usage: moorings doctor",
}
"""What a user does first, and what the answer has in it."""
STATIC = """
from importlib import resources
from moorings.console import server
page = resources.files("moorings.console").joinpath("static")
print(*(path.name for path in page.iterdir()))
"""
MOST_MB = 350
USERS_EXTRA = "console"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a wheel."""
    return image.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with the extra that users need."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    return Environment.of(wheel, folder, USERS_EXTRA)


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda given: given[0])
def test_the_command_line_runs_from_the_wheel(
    environment: Environment, arguments: tuple[str, ...]
) -> None:
    answer = environment.run("moorings", *arguments)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert COMMANDS[arguments] in answer.stdout


def test_kubectl_finds_the_plugin(environment: Environment) -> None:
    """It and its completion are commands of the wheel."""
    assert environment.run("kubectl-moorings", "--version").returncode == 0
    assert (environment.folder / "bin" / "kubectl_complete-moorings").exists()


def test_what_runs_is_the_wheel(environment: Environment) -> None:
    """Not the sources, which are on no path of that environment."""
    asked = "import moorings, solver; print(moorings.__file__, solver.__file__)"
    answer = environment.run("python", "-c", asked)
    assert answer.stdout.count(str(environment.packages)) == 2, answer.stderr


def test_the_console_has_its_page(environment: Environment) -> None:
    """Its server is imported, and finds each file of the page."""
    answer = environment.run("python", "-c", STATIC)
    page = image.ROOT / "moorings" / "console" / "static"
    assert set(answer.stdout.split()) == {path.name for path in page.iterdir()}


def test_the_wheel_holds_every_module_and_file(environment: Environment) -> None:
    """As git knows them: a file that the wheel forgets fails only at run time."""
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES],
        cwd=image.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert listed
    missing = [name for name in listed if not (environment.packages / name).is_file()]
    assert missing == []


@pytest.mark.soak
def test_what_users_install_is_small(wheel: Path, tmp_path: Path) -> None:
    """By pip alone, in an empty environment, from pinned wheels that it downloads."""
    made = Environment(tmp_path / "venv")
    (tmp_path / "pins").write_text("\n".join(_pins()))
    made.install(
        "--no-compile",
        "--constraint",
        str(tmp_path / "pins"),
        f"{wheel}[{USERS_EXTRA}]",
    )
    files = (path for path in made.folder.rglob("*") if not path.is_symlink())
    size = sum(path.stat().st_blocks * 512 for path in files if path.is_file())
    assert size < MOST_MB * 1e6
    answer = made.run("moorings", "plan", "-f", str(EXAMPLE))
    assert "Optimal: 1 allocated" in answer.stdout, answer.stderr


def _pins() -> list[str]:
    """Read which version of each package is pinned, without hashes."""
    text = (image.ROOT / "constraints.txt").read_text()
    return [
        line.removesuffix(" \\") for line in text.splitlines() if line[:1].isalpha()
    ]
