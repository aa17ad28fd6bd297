"""Cases that people reported, or stumbled over: what plan and lint answer to each.

`tests/cases/reports` has them by subject, each with the objects, what is right and why.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct, convert
from typer.testing import CliRunner, Result

from moorings.cli.main import app

FOLDER = Path(__file__).parents[1] / "cases" / "reports"


class LintAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What lint should find."""

    exit: int
    says: tuple[str, ...] = ()


class PlanAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a plan should be; what is left out is not looked at."""

    exit: int
    devices: dict[str, int | tuple[str, ...]] | None = None
    """By gang so many devices, or these, as `node/device`; nobody else has any."""
    nodes: dict[str, int] | None = None
    """By node so many pods."""
    cards: int | None = None
    """On so many cards: devices whose names are equal but for the last part."""
    card: str = ""
    """On this card alone."""
    says: tuple[str, ...] = ()
    """Words of reasons, notes and errors."""
    never: tuple[str, ...] = ()
    """Words that would be false."""
    table: tuple[str, ...] = ()
    """Patterns of the rows that people see."""


class Reported(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case."""

    name: str
    plan: PlanAnswer
    lint: LintAnswer | None = None
    gates: str = ""
    """Feature gates of the cluster that plan is told."""
    objects: list[Any]
    """Lists in it are objects as well."""


def list_reported() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for raw in yaml.safe_load(path.read_text())["cases"]:
            case = convert(raw, Reported)
            yield pytest.param(case, id=f"{path.stem}/{case.name}")


def flatten(objects: list[Any]) -> Iterator[dict[str, Any]]:
    for item in objects:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


def run(folder: Path, case: Reported, *command: str) -> Result:
    path = folder / "objects.json"
    items = list(flatten(case.objects))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return CliRunner().invoke(app, [*command, "-f", str(path)])


@pytest.mark.parametrize("case", list(list_reported()))
def test_plan_and_lint_answer_what_is_right(case: Reported, tmp_path: Path) -> None:
    planning = ("plan", *(("--feature-gates", case.gates) if case.gates else ()))
    done = run(tmp_path, case, *planning, "-o", "json")
    check_plan(case.plan, done)
    if case.plan.table:
        printed = run(tmp_path, case, *planning).stdout
        for pattern in case.plan.table:
            assert re.search(pattern, printed), printed
    if case.lint is not None:
        done = run(tmp_path, case, "lint")
        assert done.exit_code == case.lint.exit, done.output
        for words in case.lint.says:
            assert words in done.output, done.output


def check_plan(right: PlanAnswer, done: Result) -> None:
    assert done.exit_code == right.exit, done.output
    answer = json.loads(done.stdout) if done.stdout else {"claims": (), "gangs": ()}
    told = done.stderr + "\n".join(list_said(answer))
    for words in right.says:
        assert words in told, told
    for words in right.never:
        assert words not in told, told
    given = given_devices(answer["claims"])
    if right.devices is not None:
        assert given.keys() == right.devices.keys(), told
        for gang, devices in right.devices.items():
            found = given[gang]
            assert (len(found) if isinstance(devices, int) else found) == devices
    cards = {
        name.partition("/")[2].rpartition("-")[0]
        for names in given.values()
        for name in names
    }
    assert right.cards is None or len(cards) == right.cards, given
    assert not right.card or cards == {right.card}, given
    if right.nodes is not None:
        places = (pod["node"] for gang in answer["gangs"] for pod in gang["members"])
        assert Counter(places) == right.nodes


def list_said(answer: dict[str, Any]) -> Iterator[str]:
    """Go through notes and reasons, by rule and in words."""
    yield from answer.get("notes", ())
    for gang in answer["gangs"]:
        for reason in gang.get("reasons", ()):
            yield " ".join((reason["rule"], reason.get("field", ""), reason["message"]))


def given_devices(claims: Any) -> dict[str, tuple[str, ...]]:
    """List what each gang has, as `node/device`, in order."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        for result in claim.get("allocation", {}).get("devices", {}).get("results", ()):
            name = f"{claim['node']}/{result['device']}"
            found.setdefault(claim["gang"], []).append(name)
    return {gang: tuple(sorted(names)) for gang, names in found.items()}
