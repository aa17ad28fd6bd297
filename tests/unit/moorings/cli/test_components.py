"""What the commands that run something say of themselves, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct, structs
from typer.testing import CliRunner

from moorings.cli.components import up
from moorings.cli.main import app
from moorings.cli.services import CONFIGS, Variable, list_variables
from moorings.errors import UsageError
from runtime.settings import ServiceConfig


class _Base(Struct, kw_only=True):
    node: str
    """Node whose devices to drain."""


class _Config(_Base, kw_only=True):
    names: tuple[str, ...] = ("a", "b")
    lease_s: float = 3.0
    """How long
    it lasts."""
    strict: bool = False


def test_variables_are_listed_with_what_they_are_and_their_defaults() -> None:
    """As they would be written; one without a default is needed."""
    assert list(list_variables("X", _Config)) == [
        Variable(name="X_NODE", text="Node whose devices to drain.", default=None),
        Variable(name="X_NAMES", text="", default="a,b"),
        Variable(name="X_LEASE_S", text="How long it lasts.", default="3.0"),
        Variable(name="X_STRICT", text="", default="false"),
    ]


@pytest.mark.parametrize("command", CONFIGS)
def test_each_variable_of_a_service_says_what_it_is(command: str) -> None:
    variables = list(list_variables(*CONFIGS[command]))
    assert len(variables) > len(structs.fields(ServiceConfig))
    assert [each.name for each in variables if not each.text] == []


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", CONFIGS)
def test_help_of_a_service_has_its_variables(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its text below it, at any width."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = CliRunner().invoke(app, [command, "--help"]).stdout
    letters = "".join("".join(line.strip("│").split()) for line in text.splitlines())
    for each in list_variables(*CONFIGS[command]):
        assert "".join((each.name, *each.text.split(), *each.note.split())) in letters
    assert {len(line) <= width for line in text.splitlines()} == {True}


def test_options_of_a_cluster_need_one() -> None:
    """Before anything is started."""
    with pytest.raises(UsageError, match="--kubeconfig"):
        up(context="here")
    with pytest.raises(UsageError, match="--kubeconfig"):
        up(own_class=["gpu"])


def test_a_cluster_has_its_own_objects() -> None:
    """A folder of manifests and files of classes are for where there is none."""
    with pytest.raises(UsageError, match="--folder and -f"):
        up(kubeconfig=Path("config"), folder=Path("manifests"))
    with pytest.raises(UsageError, match="--folder and -f"):
        up(kubeconfig=Path("config"), filename=["classes.yaml"])
