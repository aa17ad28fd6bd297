"""Configuration from variables."""

from __future__ import annotations

import pytest
from msgspec import Struct

from runtime.config import read_config
from runtime.errors import ConfigError


class _Config(Struct, frozen=True, kw_only=True):
    cluster: str
    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    lease_s: float = 15.0
    replicas: int = 1
    dry_run: bool = False


def test_variables_become_typed_fields() -> None:
    """Numbers, booleans and lists are read from text; other prefixes are ignored."""
    config = read_config(
        _Config,
        "SOLVER_",
        {
            "SOLVER_CLUSTER": "c",
            "SOLVER_SERVERS": "nats://a:1, nats://b:2",
            "SOLVER_LEASE_S": "2.5",
            "SOLVER_REPLICAS": "3",
            "SOLVER_DRY_RUN": "true",
            "PATH": "/bin",
        },
    )

    assert config == _Config(
        cluster="c",
        servers=("nats://a:1", "nats://b:2"),
        lease_s=2.5,
        replicas=3,
        dry_run=True,
    )


def test_defaults_hold_where_nothing_is_said() -> None:
    """Only what is required must be there."""
    assert read_config(_Config, "S_", {"S_CLUSTER": "c"}) == _Config(cluster="c")


@pytest.mark.parametrize(
    ("environ", "variable", "reason"),
    [
        ({}, "S_CLUSTER", "missing"),
        ({"S_CLUSTER": "c", "S_LEASES": "1"}, "S_LEASES", "S_LEASE_S"),
        ({"S_CLUSTER": "c", "S_LEASE_S": "soon"}, "S_LEASE_S", "float"),
        ({"S_CLUSTER": "c", "S_REPLICAS": "1.5"}, "S_REPLICAS", "int"),
        ({"S_CLUSTER": "c", "S_DRY_RUN": "perhaps"}, "S_DRY_RUN", "bool"),
    ],
)
def test_a_bad_variable_is_named(
    environ: dict[str, str], variable: str, reason: str
) -> None:
    """Missing, unknown and mistyped ones alike."""
    with pytest.raises(ConfigError, match=reason) as refused:
        read_config(_Config, "S_", environ)

    assert refused.value.variable == variable
