"""A fleet file becomes a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.local.fleets import find_fleet
from moorings.simulate.cluster import read_cluster
from nodeagent.errors import SettingsError

NO_DEVICES = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: none
nodes: [{shape: plain, count: 1}]
"""


def test_jobs_want_the_devices_that_are_named_first(tmp_path: Path) -> None:
    cluster = read_cluster(find_fleet("small"))
    assert (cluster.nodes, cluster.devices, cluster.node_devices) == (8, 64, 8)
    assert cluster.device_class == "gpu.moorings.dev"
    file = tmp_path / "none.yaml"
    file.write_text(NO_DEVICES)
    with pytest.raises(SettingsError, match="have no devices"):
        read_cluster(file)
