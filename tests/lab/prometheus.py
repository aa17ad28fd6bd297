"""A real Prometheus that scrapes what a test runs, with our rules and boards."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from moorings.local.process import find_free_port
from tests.lab.manifests import K8S
from tests.lab.promtool import find_prometheus

MONITORING = K8S / "components" / "monitoring"
KUBERNETES = "kubernetes"
"""The board of others' series."""


def job(name: str, *targets: str, token: str = "") -> dict[str, Any]:
    """Scrape addresses; with a token by TLS, whatever their certificates say."""
    plain = {"job_name": name, "static_configs": [{"targets": list(targets)}]}
    if not token:
        return plain
    return plain | {
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "authorization": {"credentials": token},
    }


def board_queries(within: str, *boards: str) -> Iterator[tuple[str, str]]:
    """Go through (panel: line, expression) of boards; of all but Kubernetes' if none.

    `within` stands for Grafana's interval, such as `5s`.
    """
    for path in sorted(MONITORING.glob("boards/*.json")):
        name = path.stem.removeprefix("moorings-")
        if name not in boards if boards else name == KUBERNETES:
            continue
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                where = f"{name}: {panel['title']}: {target['legendFormat']}"
                yield where, target["expr"].replace("$__rate_interval", within)


class Prometheus:
    """One that runs, and what it says."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Evaluate an expression now."""
        answer = self._get("query", query=expression)
        found: list[dict[str, Any]] = answer["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """List the rules with their health."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        query = urllib.parse.urlencode(parameters)
        url = f"http://{self._address}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=10) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        data: dict[str, Any] = answer["data"]
        return data


@contextmanager
def prometheus(folder: Path, jobs: Sequence[dict[str, Any]]) -> Iterator[Prometheus]:
    """Run one while the block runs; it scrapes every second, and has our rules."""
    program = find_prometheus()
    spec = yaml.safe_load((MONITORING / "moorings-prometheusrule.yaml").read_text())
    (folder / "rules.yaml").write_text(yaml.safe_dump(spec["spec"]))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": list(jobs),
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{find_free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(address)
    finally:
        process.kill()
        process.wait()
