"""The settings that all services share: cluster, bus, health, traces.

Stands alone so that the services' configurations, which are core, agree on it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from contracts.ids import ClusterName

Subdomain = Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
"""The name of a driver or of a DeviceClass."""


class ServiceConfig(Struct, frozen=True, kw_only=True):
    """The base of each service's configuration."""

    cluster: ClusterName = ClusterName("local")
    """Name of the cluster on the bus."""
    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    """Addresses of NATS."""
    replicas: int = 1
    """Copies of each stream, when it is created."""
    bus_ca_file: str = ""
    """PEM file of the CA of NATS; empty: no TLS. Servers must handshake first."""
    bus_user: str = ""
    """User of the bus; empty: anonymous."""
    bus_password_file: str = ""
    """File with that user's password, or `login:password`."""
    cloud_events: bool = False
    """Add the attributes of CloudEvents to the headers of messages about gangs."""
    traces_endpoint: str = ""
    """OTLP endpoint for traces, `http://host:4318/v1/traces`; empty: no traces."""
    health_address: str = ""
    """`host:port` that serves /livez and /readyz; empty: not served."""
