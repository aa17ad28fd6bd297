"""What every service is told, whatever it does: which cluster, which bus, what health.

Stands alone so that the services' configurations, which are core, agree on it.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.ids import ClusterName


class ServiceConfig(Struct, frozen=True, kw_only=True):
    """The fields that the configuration of each service has besides its own."""

    cluster: ClusterName = ClusterName("local")
    """Whose gangs, nodes and decisions these are."""
    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    """Where NATS is."""
    replicas: int = 1
    """Of each stream, when it has to be created."""
    health_address: str = ""
    """`host:port` that answers /livez and /readyz; empty: nobody asks."""
