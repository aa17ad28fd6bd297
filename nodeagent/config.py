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
    """Create missing streams; agents on a cluster may not."""
    sources: str = ""
    """File of the node's device sources; see docs/drivers.md."""
    fleet: str = ""
    """Fleet file to simulate, instead of `sources`; see docs/fleet.md."""
    faults_file: str = ""
    """File of faults to simulate; read again when it changes."""
    node: NodeName = NodeName("")
    """Name of the node; empty, with a fleet: all its nodes."""
    kubeconfig: str = ""
    """Kubeconfig of the cluster; empty: the pod's service account."""
    advertise: tuple[str, ...] = ()
    """Extended resources that the Node `node` offers: `example.com/dongle=4`, ..."""
    kubelet_folder: str = ""
    """kubelet's folder, `/var/lib/kubelet`; empty: do not serve kubelet."""
    cdi_folder: Annotated[str, Meta(pattern="^/")] = "/var/run/cdi"
    """Folder in which the container runtime looks for CDI files."""
    device_metadata: bool = False
    """Give containers files about their devices (KEP-5304)."""
    instance: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{0,63}$")] = ""
    """Uid of the agent's pod, to tell the sockets of two agents on one node apart."""
    liveness_address: str = ""
    """`host:port` of `grpc.health.v1` for kubelet's probe; empty: not served."""
    drift_lasts_s: Annotated[float, Meta(gt=0)] = 20.0
    """How long what runs must differ from what was decided before it is reported."""
    read_s: Annotated[float, Meta(gt=0)] = 0.25
    """Seconds between readings of the devices."""
    heartbeat_s: Annotated[float, Meta(gt=0, lt=HEARTBEAT_S)] = 5.0
    """Seconds between heartbeats; less than the bus keeps one."""
    repeat_s: Annotated[float, Meta(gt=0, le=DAY_S / 4)] = 600.0
    """Seconds after which everything is sent again; the bus forgets it after a day."""
    verify_s: Annotated[float, Meta(gt=0)] = 30.0
    """Seconds between looks whether the bus still has what was sent, else it is sent
    again."""
    bad_readings: Annotated[int, Meta(ge=1)] = 3
    """Bad readings in a row that make a device Unhealthy."""
    good_readings: Annotated[int, Meta(ge=1)] = 5
    """Good readings in a row, over `recovery_s`, that make a device Healthy again."""
    recovery_s: Annotated[float, Meta(ge=0)] = 10.0
    """Seconds that those good readings must span."""
    unknown_after_s: Annotated[float, Meta(ge=0)] = 30.0
    """Seconds of silence after which a healthy device becomes Unknown."""
    unhealthy_effect: TaintEffect = TaintEffect.NO_SCHEDULE
    """Effect of the taint on an Unhealthy device: NoSchedule or None."""
    unknown_effect: TaintEffect = TaintEffect.NO_SCHEDULE
    """Effect of the taint on an Unknown device: NoSchedule or None."""
    evict_reasons: tuple[str, ...] = ()
    """Reasons, such as `Xid79`, for a NoExecute taint, which ends the pods that use the
    device."""

    def check(self) -> None:
        """Check the variables against each other.

        Raises:
            ConfigError: names the variable and the rule.
        """
        if bool(self.sources) == bool(self.fleet):
            raise ConfigError("NODEAGENT_SOURCES", "give either it or NODEAGENT_FLEET")
        if self.sources and not self.node:
            raise ConfigError("NODEAGENT_NODE", "is needed with NODEAGENT_SOURCES")
        if self.sources and self.faults_file:
            rule = "works only with a fleet; for a source `simulated` use faultsFile"
            raise ConfigError("NODEAGENT_FAULTS_FILE", rule)
        effects = {"UNHEALTHY": self.unhealthy_effect, "UNKNOWN": self.unknown_effect}
        for status, effect in effects.items():
            if effect is TaintEffect.NO_EXECUTE:
                rule = "NoExecute works only for the reasons of NODEAGENT_EVICT_REASONS"
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
