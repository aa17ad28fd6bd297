"""Configuration of the node agent, from variables that begin with `NODEAGENT_`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from contracts.ids import NodeName
from contracts.topics import DAY_S, HEARTBEAT_S
from nodeagent.health import HealthPolicy, TaintEffect
from runtime.errors import ConfigError
from runtime.settings import ServiceConfig


class NodeAgentConfig(ServiceConfig, frozen=True, kw_only=True):
    """Each field is a variable: `fleet` is `NODEAGENT_FLEET`."""

    create_streams: bool = True
    """Whether missing streams are created; an agent on a cluster may not."""
    sources: str = ""
    """The file that says where the node's devices come from; see docs/drivers.md."""
    fleet: str = ""
    """Instead of `sources`: the fleet file that is simulated; see docs/fleet.md."""
    faults_file: str = ""
    """A file of faults of the fleet, which is read again when it changes."""
    node: NodeName = NodeName("")
    """The node; empty, with a fleet: all nodes of it."""
    kubeconfig: str = ""
    """How the API server is reached; empty: by the service account of the pod."""
    advertise: tuple[str, ...] = ()
    """Extended resources that the Node `node` offers: `example.com/dongle=4`, ..."""
    kubelet_folder: str = ""
    """kubelet's own folder, `/var/lib/kubelet`; empty: kubelet is not served."""
    cdi_folder: Annotated[str, Meta(pattern="^/")] = "/var/run/cdi"
    """Where the container runtime looks for CDI files."""
    device_metadata: bool = False
    """Whether containers get files about their devices (KEP-5304)."""
    instance: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{0,63}$")] = ""
    """The uid of our pod, by which two agents of one node tell their sockets apart."""
    liveness_address: str = ""
    """Where `grpc.health.v1` answers kubelet's probe, `host:port`; empty: nowhere."""
    drift_lasts_s: Annotated[float, Meta(gt=0)] = 20.0
    """For so long what runs must differ from what was decided until it is told."""
    read_s: Annotated[float, Meta(gt=0)] = 0.25
    """How often devices are read."""
    heartbeat_s: Annotated[float, Meta(gt=0, lt=HEARTBEAT_S)] = 5.0
    """How often each node shows that it is alive; sooner than the bus forgets it."""
    repeat_s: Annotated[float, Meta(gt=0, le=DAY_S / 4)] = 600.0
    """How often everything is sent again: what is not is forgotten after a day."""
    bad_readings: Annotated[int, Meta(ge=1)] = 3
    """Bad readings in a row that make a device Unhealthy."""
    good_readings: Annotated[int, Meta(ge=1)] = 5
    """Good readings in a row that make it Healthy again, if they span `recovery_s`."""
    recovery_s: Annotated[float, Meta(ge=0)] = 10.0
    """How long the good readings must span that make a device Healthy again."""
    unknown_after_s: Annotated[float, Meta(ge=0)] = 30.0
    """Silence after which a healthy device becomes Unknown."""
    unhealthy_effect: TaintEffect = TaintEffect.NO_SCHEDULE
    """Of the taint on an Unhealthy device: NoSchedule or None."""
    unknown_effect: TaintEffect = TaintEffect.NO_SCHEDULE
    """Of the taint on an Unknown device: NoSchedule or None."""
    evict_reasons: tuple[str, ...] = ()
    """Reasons, such as `Xid79`, for which the taint is NoExecute: it ends the pods that
    use the device."""

    def check(self) -> None:
        """Refuse what the variables mean together.

        Raises:
            ConfigError: names the variable and the rule.
        """
        if bool(self.sources) == bool(self.fleet):
            raise ConfigError("NODEAGENT_SOURCES", "give it, or NODEAGENT_FLEET")
        if self.sources and not self.node:
            raise ConfigError("NODEAGENT_NODE", "is needed with NODEAGENT_SOURCES")
        if self.sources and self.faults_file:
            rule = "is about a fleet; a source `simulated` has faultsFile"
            raise ConfigError("NODEAGENT_FAULTS_FILE", rule)
        effects = {"UNHEALTHY": self.unhealthy_effect, "UNKNOWN": self.unknown_effect}
        for status, effect in effects.items():
            if effect is TaintEffect.NO_EXECUTE:
                rule = "NoExecute is for the reasons of NODEAGENT_EVICT_REASONS alone"
                raise ConfigError(f"NODEAGENT_{status}_EFFECT", rule)

    @property
    def health_policy(self) -> HealthPolicy:
        """How much evidence changes the status of a device."""
        return HealthPolicy(
            bad_readings=self.bad_readings,
            good_readings=self.good_readings,
            recovery_s=self.recovery_s,
            unknown_after_s=self.unknown_after_s,
            unhealthy_effect=self.unhealthy_effect,
            unknown_effect=self.unknown_effect,
            evict_reasons=frozenset(self.evict_reasons),
        )
