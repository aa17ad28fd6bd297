"""One stack for all tests of a module: each test has its own devices.

Not of the package: pytest would end it with the last test of all, and until then its
publisher would hold the Lease beside those of other tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import cluster
from tests.lab.cluster import Stack
from tests.lab.controlplane.server import ControlPlane


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """NATS, a solver and a publisher that own everything."""
    with cluster.started(control_plane, tmp_path_factory.mktemp("stack")) as running:
        yield running
