"""What every service is told reaches its connection to the bus."""

from __future__ import annotations

from contracts.ids import ClusterName
from runtime.config import read_config
from runtime.settings import ServiceConfig
from runtime.wire import BusSettings


def test_without_variables_a_service_speaks_to_this_machine() -> None:
    """As nobody, without TLS, and nobody asks for its health."""
    config = read_config(ServiceConfig, "X_", {})
    assert config.cluster == ClusterName("local")
    assert config.servers == ("nats://127.0.0.1:4222",)
    assert (config.bus_user, config.bus_ca_file, config.health_address) == ("", "", "")


def test_each_setting_of_the_bus_is_taken_over() -> None:
    """By its own name, to the one field that it is for."""
    environ = {
        "X_SERVERS": "nats://a, nats://b",
        "X_REPLICAS": "3",
        "X_BUS_CA_FILE": "/ca",
        "X_BUS_USER": "solver",
        "X_BUS_PASSWORD_FILE": "/password",
    }
    settings = BusSettings.of(read_config(ServiceConfig, "X_", environ), "solver")
    assert settings == BusSettings(
        servers=("nats://a", "nats://b"),
        name="solver",
        replicas=3,
        ca_file="/ca",
        user="solver",
        password_file="/password",  # noqa: S106 # a path
    )
    assert settings.inbox_prefix == "_INBOX.solver"
