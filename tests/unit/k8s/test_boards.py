"""The boards are what scripts/boards.py writes, and ask for what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.manifests import K8S
from tests.lab.metrics import list_declared
from tests.lab.promtool import promtool

ROOT = K8S.parent
FOLDER = K8S / "components" / "monitoring" / "boards"
OF_KUBERNETES = "kubernetes"
"""The board of others' series: tests/integration/test_kubernetes_metrics.py."""
NAMES = ("fleet", "gangs", "node", "solver", OF_KUBERNETES)
_SERIES = re.compile(r"\b((?:moorings|workqueue|leader_election|rest_client)_\w+)")


def board(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"moorings-{name}.json").read_text())
    return content


def targets() -> Iterator[tuple[str, dict[str, str]]]:
    """Go through (panel, query) of all boards."""
    for name in NAMES:
        for panel in board(name)["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target


def test_boards_are_as_their_code_writes_them(tmp_path: Path) -> None:
    """Else: `.venv/bin/python scripts/boards.py`."""
    script = str(ROOT / "scripts" / "boards.py")
    subprocess.run([sys.executable, script, str(tmp_path)], check=True)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert len(written) == len(NAMES)


def test_boards_ask_for_series_that_there_are() -> None:
    known = {series for metric in list_declared() for series in metric.series}
    for where, target in targets():
        if where.startswith(OF_KUBERNETES):
            continue
        named = set(_SERIES.findall(target["expr"]))
        assert named, where
        assert named <= known, where


def test_legends_name_labels_that_the_query_keeps() -> None:
    """Else a line is called by nothing."""
    for where, target in targets():
        kept = {
            label.strip()
            for labels in re.findall(r" by \(([^)]*)\)", target["expr"])
            for label in labels.split(",")
        }
        for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
            assert label in kept, where


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"board:{number}", "expr": _with_interval(target["expr"])}
        for number, (_, target) in enumerate(targets())
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(path))


def _with_interval(expression: str) -> str:
    return expression.replace("$__rate_interval", "1m")


@pytest.mark.parametrize("name", NAMES)
def test_a_board_is_what_grafana_reads(name: str) -> None:
    """Panels are told apart, fit beside each other, and know their source."""
    content = board(name)
    assert content["uid"] == f"moorings-{name}"
    (source,) = content["templating"]["list"]
    places = set()
    for number, panel in enumerate(content["panels"], start=1):
        assert panel["id"] == number
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["datasource"]["uid"] == f"${{{source['name']}}}"
        assert panel["datasource"]["type"] == source["query"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        places.add((panel["gridPos"]["x"], panel["gridPos"]["y"]))
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    assert len(places) == len(content["panels"])
