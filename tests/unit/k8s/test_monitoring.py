"""k8s/components/monitoring: each alert fires when it should, and says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.streams import STREAMS
from tests.lab.manifests import K8S
from tests.lab.metrics import list_declared
from tests.lab.promtool import promtool

ROOT = K8S.parent
MONITORING = K8S / "components" / "monitoring"
RULES = MONITORING / "moorings-prometheusrule.yaml"
CASES = ROOT / "tests" / "data" / "alerts.yaml"
AT = "35m"
_SERIES = re.compile(r"\b((?:moorings|workqueue|leader_election|rest_client)_\w+)")


def rules() -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load(RULES.read_text())["spec"]
    return spec


def alerts() -> Iterator[dict[str, Any]]:
    for group in rules()["groups"]:
        yield from group["rules"]


def cases() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = yaml.safe_load(CASES.read_text())
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rules as a file that Prometheus reads."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules()))
    return tmp_path


def test_prometheus_takes_the_rules(folder: Path) -> None:
    said = promtool("check", "rules", str(folder / "rules.yaml"))
    assert f"{len(list(alerts()))} rules found" in said


def test_each_alert_fires_when_it_should_and_not_when_it_should_not(
    folder: Path,
) -> None:
    """And every alert is tried."""
    assert set(cases()) == {alert["alert"] for alert in alerts()}
    tests = [
        {
            "interval": "1m",
            "name": f"{name} {outcome}",
            "input_series": [_series_of(line) for line in case[outcome]],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                    "eval_time": AT,
                    "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
                }
            ],
        }
        for name, case in cases().items()
        for outcome, fires in (("fires", True), ("silent", False))
    ]
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": tests,
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(content))
    promtool("test", "rules", str(folder / "test.yaml"))


def _series_of(line: str) -> dict[str, str]:
    series, _, values = line.partition(" ")
    return {"series": series, "values": values}


def test_rules_and_cases_name_what_there_is() -> None:
    """A series that nobody has is a rule that never fires."""
    known = {series for metric in list_declared() for series in metric.series}
    for alert in alerts():
        named = set(_SERIES.findall(alert["expr"]))
        assert named, alert["alert"]
        assert named <= known, alert["alert"]
    for name, case in cases().items():
        for line in (*case["fires"], *case["silent"]):
            assert set(_SERIES.findall(line.partition("{")[0])) <= known, name


def test_each_alert_has_a_runbook() -> None:
    """Its anchor is a heading of docs/troubleshoot.md."""
    text = (ROOT / "docs" / "troubleshoot.md").read_text()
    headings = re.findall(r"^#+ (Moorings\w+)$", text, re.MULTILINE)
    assert headings == [alert["alert"] for alert in alerts()]
    for alert in alerts():
        anchor = f"docs/troubleshoot.md#{alert['alert'].lower()}"
        assert alert["annotations"]["runbook"] == anchor
        assert alert["labels"]["severity"] in ("critical", "warning")


def test_streams_that_are_meant_to_be_full_do_not_fill() -> None:
    (expression,) = (
        alert["expr"] for alert in alerts() if alert["alert"] == "MooringsStreamFilling"
    )
    (left_out,) = re.findall(r'stream!~"([^"]*)"', expression)
    disposable = {stream.name for stream in STREAMS if stream.disposable}
    assert set(left_out.split("|")) == disposable
