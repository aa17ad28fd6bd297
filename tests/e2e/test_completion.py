"""What the shell completes while `moorings up` runs: names that its bus knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.builders.inputs import named
from tests.lab.command_line import moorings, read_server, stack_up


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a running `moorings up` of the small fleet keeps its state."""
    home = tmp_path_factory.mktemp("home")
    with stack_up(home) as process:
        read_server(process)  # from then on it is up
        yield home


TRIES = 5
"""A shell gets what was read within two seconds, which a busy machine may exceed."""


def eventually_completed(home: Path, *words: str) -> set[str]:
    """Give what is completed once something is."""
    found: set[str] = set()
    for _ in range(TRIES):
        found = found or completed(home, *words)
    return found


def completed(home: Path, *words: str) -> set[str]:
    """Say what bash may complete the last word to."""
    environment = {
        "_MOORINGS_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("moorings", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = moorings(home=home, environment=environment)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_names_that_the_bus_knows_are_completed(home: Path, tmp_path: Path) -> None:
    """Gangs, in their namespaces once there is a slash, and recorded solves."""
    file = tmp_path / "gang.yaml"
    file.write_text(yaml.safe_dump(named("complete-me")))
    assert moorings("submit", "-f", str(file), "--wait", home=home).returncode == 0
    assert eventually_completed(home, "explain", "complete") == {"complete-me"}
    found = eventually_completed(home, "release", "team-a/compl")
    assert found == {"team-a/complete-me"}
    assert completed(home, "explain", "-n", "team-b", "complete") == set()
    listed = moorings("get", "solves", "-o", "json", home=home)
    solve = json.loads(listed.stdout)[-1]
    begun = solve["opened"]["solve"][:6]
    assert solve["opened"]["solve"][:16] in eventually_completed(home, "replay", begun)
    assert moorings("release", "complete-me", home=home).returncode == 0
