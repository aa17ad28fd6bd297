"""Configuration of the node agent, from variables that begin with `NODEAGENT_`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from contracts.ids import ClusterName, NodeName


class NodeAgentConfig(Struct, frozen=True, kw_only=True):
    """Each field is a variable: `fleet` is `NODEAGENT_FLEET`."""

    cluster: ClusterName = ClusterName("local")
    """Whose nodes these are."""
    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    """Where NATS is."""
    replicas: int = 1
    """Of each stream, when it has to be created."""
    create_streams: bool = True
    """Whether missing streams are created; an agent on a cluster may not."""
    fleet: Annotated[str, Meta(min_length=1)]
    """The fleet file that is simulated; see docs/fleet.md."""
    faults_file: str = ""
    """A file of faults that is read again when it changes."""
    node: NodeName = NodeName("")
    """Stand for this node of the fleet alone; empty: for all of them."""
    read_s: Annotated[float, Meta(gt=0)] = 0.25
    """How often devices are looked at."""
    heartbeat_s: Annotated[float, Meta(gt=0)] = 5.0
    """How often each node shows that it is alive."""
    heartbeat_ttl_s: Annotated[int, Meta(ge=1)] = 20
    """How long a heartbeat lasts on the bus."""
    repeat_s: Annotated[float, Meta(gt=0)] = 600.0
    """How often everything is said again."""
