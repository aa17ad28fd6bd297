"""Configuration of the publisher, from variables that begin with `PUBLISHER_`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from contracts.avoidance import GRACE_S
from contracts.pods.membership import WorkloadAPI
from runtime.kube.kinds import VERSIONS
from runtime.settings import ServiceConfig

_Subdomain = Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
_Label = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9./_-]*=[A-Za-z0-9._-]*$")]


class PublisherConfig(ServiceConfig, frozen=True, kw_only=True):
    """Each field is a variable: `folder` is `PUBLISHER_FOLDER`."""

    folder: str = ""
    """Where manifests are written; made if it is not there. Empty: to a cluster."""
    kubeconfig: str = ""
    """The way to the cluster; empty: the service account of the pod that we run in."""
    context: str = ""
    """Of the kubeconfig; empty: its current one."""
    api_versions: tuple[str, ...] = VERSIONS
    """Of resource.k8s.io: the first that the cluster serves is used."""
    namespace: Annotated[str, Meta(min_length=1)] = "moorings-system"
    """Where the Lease is by which publishers agree who writes."""
    lease_s: Annotated[float, Meta(ge=1)] = 15.0
    """How long the Lease lasts: so long nobody writes after a leader has crashed."""
    name: str = ""
    """Of this publisher among others; empty: host and process."""
    sweep_s: Annotated[float, Meta(gt=0)] = 10.0
    """How often claims are looked for that hold devices for nobody."""
    refusal_grace_s: Annotated[float, Meta(ge=0)] = GRACE_S
    """So long kube-scheduler may refuse a pinned pod before anything is done."""
    publish_slices: bool = True
    """True if announced pools become ResourceSlices too."""
    agent_drivers: tuple[_Subdomain, ...] = ()
    """Drivers whose devices node agents may announce; empty: any."""
    worst_effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """Of the taints that they may put on devices; `NoExecute` ends pods."""
    evictions_percent: Annotated[float, Meta(ge=0, le=100)] = 5.0
    """So much of all announced devices may begin to end their pods in a minute."""
    owned_drivers: tuple[_Subdomain, ...] = ()
    """Drivers whose devices are decided here, and tainted for kube-scheduler."""
    owned_classes: tuple[_Subdomain, ...] = ()
    """Device classes that are decided here; empty: all."""
    owned_nodes: tuple[_Label, ...] = ()
    """Labels, `key=value` each, of the nodes that are decided here; empty: all."""
    workloads: tuple[WorkloadAPI, ...] = tuple(WorkloadAPI)
    """What puts pods together that have no gang label (docs/workloads.md)."""
    kueue_checks: bool = False
    """True if we answer for AdmissionChecks of Kueue (docs/workloads.md)."""
    kueue_patience_s: Annotated[float, Meta(gt=0)] = 300.0
    """How long devices may be waited for with quota, until it is given back."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 8
    """Gangs written at the same time."""
    write_budget_s: float = 45.0
    """How long a failed write is tried again before the decision is refused."""
