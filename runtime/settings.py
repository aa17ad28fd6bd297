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
    bus_ca_file: str = ""
    """Who vouches for NATS, as PEM; empty: no TLS. Servers begin with the handshake."""
    bus_user: str = ""
    """As whom we speak on the bus; empty: as nobody."""
    bus_password_file: str = ""
    """Holds that user's password, or `login:password`."""
    cloud_events: bool = False
    """Whether what we say of gangs has the attributes of CloudEvents in its headers."""
    traces_endpoint: str = ""
    """Where traces go, by OTLP: `http://host:4318/v1/traces`; empty: nowhere."""
    health_address: str = ""
    """`host:port` that answers /livez and /readyz; empty: nobody asks."""
