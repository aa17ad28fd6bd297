"""One stack for all modules of this folder: each test has its own devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import cluster
from tests.lab.cluster import Stack
from tests.lab.controlplane.server import ControlPlane


@pytest.fixture(scope="package")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """NATS, a solver and a publisher that own everything."""
    with cluster.started(control_plane, tmp_path_factory.mktemp("stack")) as running:
        yield running
