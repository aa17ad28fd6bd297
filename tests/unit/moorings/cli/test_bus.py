"""`moorings bus`: the subjects for people, the document for programs."""

from __future__ import annotations

import json

import yaml
from typer.testing import CliRunner

from moorings.cli.main import app


def test_the_subjects_are_a_table() -> None:
    """Who sends, who receives, and what."""
    result = CliRunner().invoke(app, ["bus", "describe"])
    assert result.exit_code == 0
    (line,) = [row for row in result.stdout.splitlines() if row.startswith("submit.")]
    assert line.split()[:2] == ["submit.v1.<cluster>.<namespace>.<uid>", "SUBMIT"]
    assert line.endswith("SubmitGang")


def test_the_document_is_yaml_or_json() -> None:
    """Of the same content."""
    texts = [
        CliRunner().invoke(app, ["bus", "describe", "-o", form]).stdout
        for form in ("yaml", "json")
    ]
    assert yaml.safe_load(texts[0]) == json.loads(texts[1])
    assert json.loads(texts[1])["asyncapi"].startswith("3.")
