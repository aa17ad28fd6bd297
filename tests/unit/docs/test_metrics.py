"""docs/metrics.md has every metric of the code, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lab.metrics import list_declared
from tests.lab.promtool import promtool

ROOT = Path(__file__).parents[3]
_ROW = re.compile(
    r"^\| `([a-z_]+)` \| (\w+) \| ([\w, -]+) \| (\w+) \| (.+) \|$", re.MULTILINE
)


def test_the_table_is_the_code() -> None:
    """Name, type, labels, service and meaning, in the order of their names."""
    written = _ROW.findall((ROOT / "docs" / "metrics.md").read_text())
    assert written == [
        (
            metric.name,
            metric.kind,
            ", ".join(metric.labels) or "-",
            metric.service,
            metric.help.removesuffix("."),
        )
        for metric in list_declared()
    ]


def test_names_are_as_prometheus_wants_them() -> None:
    """Units, suffixes and help, of all metrics at once."""
    text = "".join(
        f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
        + "".join(
            f'{series}{{le="+Inf"}} 1\n'
            if series.endswith("_bucket")
            else f"{series} 1\n"
            for series in metric.series
        )
        for metric in list_declared()
    )
    promtool("check", "metrics", text=text)
