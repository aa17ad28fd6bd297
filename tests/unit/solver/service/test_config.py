"""What the variables of the solver say of the cluster."""

from __future__ import annotations

import pytest

from contracts.features import FeatureError, features_of
from contracts.ids import Namespace
from runtime.config import read_config
from runtime.errors import ConfigError
from solver.service.config import SolverConfig


def test_features_are_those_of_the_release_and_its_gates() -> None:
    """A gate that is named counts before the release's default."""
    config = SolverConfig(
        kubernetes_version="1.35", feature_gates=("DRAPartitionableDevices=true",)
    )
    assert config.features_of("1.37").partitionable_devices
    assert not features_of("1.35").partitionable_devices


def test_a_gate_that_nobody_knows_is_refused() -> None:
    """A misspelt gate would silently decide otherwise than the cluster."""
    with pytest.raises(FeatureError):
        SolverConfig(feature_gates=("DRAPartitions=true",)).features_of("")


@pytest.mark.parametrize(
    ("configured", "said", "counts"),
    [
        ("", "1.35", "1.35"),
        ("", "", "1.37"),
        ("1.34", "1.36", "1.34"),
        ("", "1.41", "1.38"),
        ("", "1.31", "1.32"),
        ("", "2.0", "1.38"),
    ],
)
def test_release_is_the_clusters_own_unless_it_is_configured(
    configured: str, said: str, counts: str
) -> None:
    """Of a release that nobody knows yet, the nearest one is the best guess."""
    config = SolverConfig(kubernetes_version=configured)
    assert config.features_of(said) == features_of(counts)


def test_a_quota_that_cannot_be_read_is_refused_at_the_start() -> None:
    """The line is named; nobody goes on without a limit that was meant."""
    environ = {"SOLVER_GANG_QUOTAS": "team-a=4, team-b"}
    with pytest.raises(ConfigError, match="quota 'team-b': must be NAMESPACE"):
        read_config(SolverConfig, "SOLVER_", environ)
    environ["SOLVER_GANG_QUOTAS"] = "team-a=4, *=8"
    config = read_config(SolverConfig, "SOLVER_", environ)
    assert config.read_gang_quotas().of(Namespace("team-a")) == 4
    environ["SOLVER_GANG_QUOTAS"] = "team-a/gpu.example.com=4"
    with pytest.raises(ConfigError, match="must be NAMESPACE=NUMBER"):
        read_config(SolverConfig, "SOLVER_", environ)
