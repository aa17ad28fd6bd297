"""What the variables of the solver say of the cluster."""

from __future__ import annotations

import pytest

from contracts.features import FeatureError, features_of
from solver.service.config import SolverConfig


def test_features_are_those_of_the_release_and_its_gates() -> None:
    """A gate that is named counts before the release's default."""
    config = SolverConfig(
        kubernetes_version="1.35", feature_gates=("DRAPartitionableDevices=true",)
    )
    assert config.features.partitionable_devices
    assert not features_of("1.35").partitionable_devices


def test_a_gate_that_nobody_knows_is_refused() -> None:
    """A misspelt gate would silently decide otherwise than the cluster."""
    with pytest.raises(FeatureError):
        _ = SolverConfig(feature_gates=("DRAPartitions=true",)).features
