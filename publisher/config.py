"""Configuration of the publisher, from variables that begin with `PUBLISHER_`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from contracts.avoidance import GRACE_S
from contracts.pods.membership import WorkloadAPI
from runtime.kube.kinds import VERSIONS
from runtime.settings import ServiceConfig, Subdomain

_Label = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9./_-]*=[A-Za-z0-9._-]*$")]


class PublisherConfig(ServiceConfig, frozen=True, kw_only=True):
    """Each field is a variable: `folder` is `PUBLISHER_FOLDER`."""

    folder: str = ""
    """Folder for manifests, created if missing; empty: write to a cluster."""
    kubeconfig: str = ""
    """Kubeconfig of the cluster; empty: the pod's service account."""
    context: str = ""
    """Context of the kubeconfig; empty: its current one."""
    api_versions: tuple[str, ...] = VERSIONS
    """Versions of resource.k8s.io; the first that the cluster serves is used."""
    namespace: Annotated[str, Meta(min_length=1)] = "moorings-system"
    """Namespace of the Lease by which publishers agree who writes."""
    lease_s: Annotated[float, Meta(ge=1)] = 15.0
    """Seconds that the Lease lasts, in which nobody writes after a leader crashed,
    unless its successor runs in its place."""
    name: str = ""
    """Name of this publisher; empty: host name and process id."""
    pod_uid: str = ""
    """Uid of the pod that we run in, of whose containers no other is a publisher: a
    restarted one takes the Lease at once; empty: only on the same host."""
    sweep_s: Annotated[float, Meta(gt=0)] = 10.0
    """Seconds between searches for claims that hold devices for nobody."""
    refusal_grace_s: Annotated[float, Meta(ge=0)] = GRACE_S
    """Seconds that kube-scheduler may refuse a pinned pod before anything is done."""
    publish_slices: bool = True
    """True if announced pools become ResourceSlices too."""
    agent_drivers: tuple[Subdomain, ...] = ()
    """Drivers whose devices node agents may announce; empty: any. The same as the
    solver's."""
    worst_effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """Strongest effect of the taints that they may put on devices."""
    evictions_percent: Annotated[float, Meta(ge=0, le=100)] = 5.0
    """Share of all announced devices that may begin to end their pods in a minute."""
    owned_drivers: tuple[Subdomain, ...] = ()
    """Drivers whose devices Moorings alone allocates, by taints for kube-scheduler."""
    owned_classes: tuple[Subdomain, ...] = ()
    """Device classes that Moorings allocates; empty: all."""
    owned_nodes: tuple[_Label, ...] = ()
    """Labels, `key=value`, of the nodes that Moorings allocates; empty: all."""
    workloads: tuple[WorkloadAPI, ...] = tuple(WorkloadAPI)
    """APIs that group pods without a gang label (docs/workloads.md)."""
    late_gates: tuple[str, ...] = ()
    """Scheduling gates of others that open after devices are decided."""
    allocate_bound: bool = False
    """True if pods created with `nodeName` get devices of that node, where it has any
    left."""
    kueue_checks: bool = False
    """True if we answer for AdmissionChecks of Kueue (docs/workloads.md)."""
    kueue_patience_s: Annotated[float, Meta(gt=0)] = 300.0
    """Seconds to wait for devices with Kueue's quota before it is given back."""
    kueue_retry_s: Annotated[float, Meta(ge=1)] = 60.0
    """Seconds until Kueue asks again after that; twice as many each time."""
    classic_controllers: tuple[Subdomain, ...] = ()
    """On Kubernetes 1.30 or 1.31: the controllers, or drivers, as which we allocate
    claims of classic DRA, and nothing else; empty: none (docs/classic.md)."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 8
    """Gangs that are written at the same time."""
    kube_api_qps: Annotated[float, Meta(ge=0)] = 0.0
    """Requests a second to the API server, renewals of the Lease apart; 0: any."""
    kube_api_burst: Annotated[int, Meta(ge=1)] = 10
    """Requests that may go at once under that limit."""
    write_budget_s: float = 45.0
    """Seconds for which a failed write is retried before the decision is refused."""
