"""What is read of files and texts; what the API server says is read in integration."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from moorings.errors import BadInputError
from moorings.observing.cluster import read_gates, read_scheduler_config
from runtime.kube.api import KubernetesApi

METRICS = """\
# HELP kubernetes_feature_enabled [BETA] This metric records the data
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1
kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 0
other_total{name="DRAPrioritizedList"} 1
"""


class Texts:
    """An API server with these metrics."""

    async def read_text(self, path: str) -> str:
        """Return them."""
        assert path == "/metrics"
        return METRICS


async def test_gates_are_read_from_the_metrics_of_their_name_alone() -> None:
    gates = await read_gates(cast("KubernetesApi", Texts()))
    assert gates == {"DRAAdminAccess": True, "DRADeviceTaints": False}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod", "not a KubeSchedulerConfiguration"),
        ("- a list", "not a KubeSchedulerConfiguration"),
        ("{", "expected"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_something_else_is_named(
    tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "scheduler.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadInputError, match=words) as refused:
        read_scheduler_config(file)
    assert str(file) in str(refused.value)


def test_a_configuration_of_the_scheduler_is_read(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("kind: KubeSchedulerConfiguration\nclientConnection: {qps: 50}\n")
    assert read_scheduler_config(file)["clientConnection"] == {"qps": 50}
