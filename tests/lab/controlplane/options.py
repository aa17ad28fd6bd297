"""What may differ between two control planes."""

from __future__ import annotations

from msgspec import Struct

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
PROGRAMS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
"""In the order in which they start."""

CONTROLLERS = (
    "daemonset-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "taint-eviction-controller",
)
"""No node lifecycle controller: nodes need no leases and stay as they are made. The
index by which taint-eviction-controller finds pods is then made by another's start."""


class User(Struct, frozen=True):
    """Somebody with a token of their own from the start."""

    name: str
    groups: tuple[str, ...] = ()


class ClientLimits(Struct, frozen=True):
    """How many requests a second a component may send, and how many at once."""

    qps: int = 500
    burst: int = 1000


class Options(Struct, frozen=True, kw_only=True):
    """How to start a control plane; by default: everything, as released."""

    programs: tuple[str, ...] = PROGRAMS
    """What runs; the programs that are left out have their ports all the same."""
    emulated_version: str = ""
    """Such as "1.34": behave as that release did."""
    feature_gates: tuple[str, ...] = ()
    """Such as "GenericWorkload=true", for every program."""
    runtime_config: tuple[str, ...] = ()
    """Such as "resource.k8s.io/v1beta1=true": more that the API server serves."""
    disabled_admission: tuple[str, ...] = ("TaintNodesByCondition",)
    """With that plugin no node could be made usable by one request."""
    controllers: tuple[str, ...] = CONTROLLERS
    controller_manager_limits: ClientLimits = ClientLimits()
    """Kubernetes' own are 20 and 30; template claims then take minutes."""
    scheduler_limits: ClientLimits = ClientLimits()
    """Kubernetes' own are 50 and 100."""
    scheduler_ready_path: str = "/readyz"
    """Its /healthz says ok before it can work; 1.30 has nothing else."""
    binding_timeout: str = ""
    """Such as "3s": so long kube-scheduler waits for devices; by default 10 minutes."""
    dra_version: str = "v1"
    """In which version objects of v1 travel; those of v1alpha2 and 3 are not of it."""
    users: tuple[User, ...] = ()
    """Besides the admin; `ControlPlane.kubeconfig` makes one of a name."""


NEWEST = "1.37"
"""The release that the programs are."""
NEXT = "1.38"
"""The release that the other programs are (`scripts/controlplane-next.sh`)."""
OLDER = ("1.30", "1.31", "1.32", "1.33")
"""Releases from before v1, whose own programs run (`scripts/controlplane-older.sh`)."""
LOOPS_UNTIL = NEXT
"""Before it, reservations of ended pods come and go (kubernetes/kubernetes#141274)."""
RELEASE = "MOORINGS_KUBERNETES"
"""The variable that names the release which all tests with a control plane see: 1.34,
1.35 or 1.36 as emulated by the newest, which cannot show their bugs, or the next."""


def of_release(version: str) -> Options:
    """Start a release; an older one also serves the versions before v1."""
    if version in (NEWEST, NEXT):
        return Options()
    if version in OLDER:
        return _before_v1(version)
    betas = tuple(f"resource.k8s.io/{beta}=true" for beta in ("v1beta1", "v1beta2"))
    return Options(emulated_version=version, runtime_config=betas)


def _before_v1(version: str) -> Options:
    """Start a release in which DRA is alpha or beta, with classic DRA if it has it."""
    served, gates = {
        "1.30": ("v1alpha2", ("DynamicResourceAllocation=true",)),
        "1.31": (
            "v1alpha3",
            ("DynamicResourceAllocation=true", "DRAControlPlaneController=true"),
        ),
        "1.32": ("v1beta1", ("DynamicResourceAllocation=true",)),
        "1.33": ("v1beta2", ("DynamicResourceAllocation=true",)),
    }[version]
    versions = ("v1beta1", served) if version == "1.33" else (served,)
    return Options(
        dra_version=served if served.startswith("v1beta") else "v1",
        scheduler_ready_path="/healthz" if version == "1.30" else "/readyz",
        feature_gates=gates,
        runtime_config=tuple(f"resource.k8s.io/{each}=true" for each in versions),
        controllers=tuple(
            name for name in CONTROLLERS if name != "device-taint-eviction-controller"
        ),
    )
