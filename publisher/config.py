"""Configuration of the publisher, from variables that begin with `PUBLISHER_`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from contracts.ids import ClusterName


class PublisherConfig(Struct, frozen=True, kw_only=True):
    """Each field is a variable: `folder` is `PUBLISHER_FOLDER`."""

    cluster: ClusterName = ClusterName("local")
    """Whose decisions are written."""
    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    """Where NATS is."""
    replicas: int = 1
    """Of each stream, when it has to be created."""
    folder: Annotated[str, Meta(min_length=1)]
    """Where manifests are written; made if it is not there."""
    publish_slices: bool = True
    """Whether announced pools become ResourceSlices too."""
    owned_drivers: tuple[str, ...] = ()
    """Drivers whose devices get the taint that keeps kube-scheduler away."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 8
    """Gangs written at the same time."""
    write_budget_s: float = 45.0
    """How long a failed write is tried again before the decision is refused."""
