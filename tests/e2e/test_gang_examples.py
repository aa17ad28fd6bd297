"""Every example of docs/gangs.md is planned, and the answer is held to its rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorings.cli.main import app
from tests.lab.gang_examples import (
    CHECKS,
    CLUSTER,
    FOLDER,
    DeviceKey,
    ExamplePod,
    ExampleSite,
)


def placed(plan: Any) -> Iterator[ExamplePod]:
    """Read who got what of a plan with one gang."""
    (gang,) = plan["gangs"]
    devices: dict[tuple[str, int], list[DeviceKey]] = {}
    for claim in plan["claims"]:
        of_pod = devices.setdefault((claim["member"], claim["index"]), [])
        if claim["verdict"] == "allocated":
            of_pod += (
                (result["driver"], result["pool"], result["device"])
                for result in claim["allocation"]["devices"]["results"]
            )
    for pod in gang["members"]:
        key = (pod["name"], pod["index"])
        yield ExamplePod(*key, pod["node"], tuple(devices[key]))


@pytest.mark.parametrize("name", CHECKS)
def test_an_example_gets_what_its_rule_says(name: str) -> None:
    """As its page has it: nothing of it is taken otherwise than it is written."""
    files = ("-f", str(CLUSTER), "-f", str(FOLDER / f"{name}.yaml"))
    answer = CliRunner().invoke(app, ("plan", *files, "-o", "json"))
    assert answer.exit_code == 0, answer.output
    assert not answer.stderr
    CHECKS[name](ExampleSite(), list(placed(json.loads(answer.stdout))))


@pytest.mark.parametrize("name", ["rack", "channel"])
def test_why_not_is_said_as_the_page_has_it(name: str, tmp_path: Path) -> None:
    """With a worker more than a rack has room for."""
    text = (FOLDER / f"{name}.yaml").read_text()
    three = tmp_path / "three.yaml"
    three.write_text(text.replace("s: 2", "s: 3").replace("m: 2", "m: 3"))
    words = ("plan", "-f", str(CLUSTER), "-f", str(three), "-o", "json")
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 1, answer.output
    (gang,) = json.loads(answer.stdout)["gangs"]
    (reason,) = gang["reasons"]
    field, subject = reason.get("field"), reason.get("subject")
    where = f": {field}" if field else f" ({subject})"
    said = f"{reason['rule']}{where}: {reason['message']}"
    assert said in " ".join((FOLDER.parent / "gangs.md").read_text().split())


def test_every_example_is_shown_and_checked() -> None:
    """The page names each, and each has a check."""
    page = (FOLDER.parent / "gangs.md").read_text()
    names = {path.stem for path in FOLDER.glob("*.yaml")} - {CLUSTER.stem}
    assert names == CHECKS.keys()
    for name in names:
        assert f"gangs/{name}.yaml" in page, name
