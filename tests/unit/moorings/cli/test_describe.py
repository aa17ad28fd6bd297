"""One thing in full is a line for each field."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from moorings.cli.describe import print_fields
from moorings.cli.main import app


def test_fields_are_lines_and_what_is_in_them_further_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names of others, as of attributes and labels, stay as they are."""
    print_fields(
        {
            "name": "gpu-0",
            "healthMessage": "",
            "states": ["Held", "Tainted"],
            "holders": [{"gang": "a/b", "pods": []}],
            "attributes": {"driverVersion": {"version": "1.0"}, "a/b": {"int": 0}},
            "taints": [],
        }
    )
    assert capsys.readouterr().out.splitlines() == [
        "Name:           gpu-0",
        "Health message: <none>",
        "States:         Held, Tainted",
        "Holders:",
        "  Gang: a/b",
        "  Pods: <none>",
        "Attributes:",
        "  driverVersion: 1.0",
        "  a/b:           0",
        "Taints:         <none>",
    ]


def test_a_kind_without_a_name_is_answered_with_what_lists_it() -> None:
    result = CliRunner().invoke(app, ["describe", "nodes"])
    assert "`moorings get nodes` lists" in str(result.exception)
