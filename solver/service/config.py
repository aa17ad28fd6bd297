"""Configuration of the solver service, from variables that begin with `SOLVER_`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from contracts.features import (
    DEFAULT_VERSION,
    Features,
    features_of,
    nearest_release,
    read_gates,
)
from contracts.fence import MAX_LEASE_S
from runtime.settings import ServiceConfig, Subdomain
from solver.quotas import Quotas
from solver.timeline.patience import read_patience


class SolverConfig(ServiceConfig, frozen=True, kw_only=True):
    """Each field is a variable: `cluster` is `SOLVER_CLUSTER`."""

    name: str = ""
    """Name of this solver; empty: host name and process id."""
    lease_s: Annotated[float, Meta(gt=0, le=MAX_LEASE_S)] = 15.0
    """Seconds after its last message for which a leader counts as alive."""
    batch_gangs: int = 256
    """Most gangs in one solve."""
    batch_pods: int = 2048
    """Most pods in one solve; a single gang may have more."""
    work_limit: float = 8.0
    """CP-SAT deterministic time of one solve."""
    guard_s: float = 240.0
    """Seconds after which a solve is given up and retried with half the batch; the
    hardest worlds of the benchmarks take 80 of one core."""
    worker_memory_bytes: int = 4 << 30
    """Bytes of memory that the worker process may use."""
    kubernetes_version: str = ""
    """Kubernetes release, for the defaults of feature gates; empty: the one that the
    publisher reports, or the newest known."""
    feature_gates: tuple[str, ...] = ()
    """Feature gates that differ from their defaults, as `Name=true`."""
    heartbeat_grace_s: float = 30.0
    """Seconds that a node may be silent before it counts as away."""
    agent_drivers: tuple[Subdomain, ...] = ()
    """Drivers whose devices node agents may announce; empty: any. The same as the
    publisher's."""
    gang_quotas: tuple[str, ...] = ()
    """Most waiting gangs of a namespace that are tried, as `NAMESPACE=NUMBER`, the most
    urgent first; `*` is every namespace without a quota of its own."""
    patience: str = "30m"
    """How long a gang is tried in vain before devices are kept for it, such as `30m`;
    `never`: for no gang. A ClusterQueue may say it by `moorings.dev/patience`."""
    census_s: Annotated[float, Meta(gt=0)] = 10.0
    """Seconds between counts of the whole cluster for /metrics."""
    retention_s: float = 86_400.0
    """Seconds that a gang's messages stay in the streams after its end."""

    def __post_init__(self) -> None:
        self.read_gang_quotas()
        self.read_patience()

    def read_gang_quotas(self) -> Quotas:
        """Return how many waiting gangs of namespaces are tried.

        Raises:
            QuotaError: a quota cannot be read.
        """
        return Quotas.read(self.gang_quotas)

    def read_patience(self) -> int:
        """Return how many seconds a gang waits before devices are kept for it.

        Raises:
            ValueError: it is no duration.
        """
        try:
            return read_patience(self.patience)
        except ValueError as error:
            raise ValueError(f"patience: {error}, `0s` or `never`") from error

    def features_of(self, release: str) -> Features:
        """Return what the cluster's allocator may do.

        `release` is what the API server says of itself; empty: nothing. What is
        configured counts instead; of a release that is not known, the nearest one.

        Raises:
            FeatureError: an unknown version or gate is configured.
        """
        followed = nearest_release(release) if release else DEFAULT_VERSION
        version = self.kubernetes_version or followed
        return features_of(version, read_gates(self.feature_gates))
