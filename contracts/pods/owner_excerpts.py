"""What is read of the objects that say how many pods make a gang whole. Pure.

Source: as docs/workloads.md names the projects and their versions.
"""

from __future__ import annotations

from typing import Any

from contracts.meta import ObjectMeta
from contracts.structs import KubernetesExcerpt


class _Anything(KubernetesExcerpt, frozen=True, kw_only=True):
    """A field of which only its presence counts."""


class _GangPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    min_count: int | None = None
    min_group_count: int | None = None


class _SchedulingPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    basic: _Anything | None = None
    gang: _GangPolicy | None = None


class _TopologyConstraint(KubernetesExcerpt, frozen=True, kw_only=True):
    key: str = ""


class SchedulingConstraints(KubernetesExcerpt, frozen=True, kw_only=True):
    """Where pods of a PodGroup, CompositePodGroup or Job are to be."""

    topology: tuple[_TopologyConstraint, ...] = ()


class _JobScheduling(KubernetesExcerpt, frozen=True, kw_only=True):
    scheduling_policy: _SchedulingPolicy = _SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()


class _JobSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    parallelism: int = 1
    completions: int | None = None
    active_deadline_seconds: int | None = None
    scheduling: _JobScheduling = _JobScheduling()

    @property
    def at_once(self) -> int:
        if self.completions is None:
            return self.parallelism
        return min(self.parallelism, self.completions)


class _JobStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    succeeded: int = 0
    failed_indexes: str | None = None


class JobExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A Job of batch/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()


class _DeploymentSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1


class DeploymentExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A Deployment or ReplicaSet of apps/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _DeploymentSpec = _DeploymentSpec()


class _StatefulSetSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1
    pod_management_policy: str = "OrderedReady"


class StatefulSetExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A StatefulSet of apps/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _StatefulSetSpec = _StatefulSetSpec()


class _JobTemplate(KubernetesExcerpt, frozen=True, kw_only=True):
    spec: _JobSpec = _JobSpec()


class _DependsOn(KubernetesExcerpt, frozen=True, kw_only=True):
    name: str = ""


class _ReplicatedJob(KubernetesExcerpt, frozen=True, kw_only=True):
    name: str = ""
    replicas: int = 1
    template: _JobTemplate = _JobTemplate()
    depends_on: tuple[_DependsOn, ...] = ()


class _StartupPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    startup_policy_order: str = "AnyOrder"


class _JobSetSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    replicated_jobs: tuple[_ReplicatedJob, ...] = ()
    startup_policy: _StartupPolicy = _StartupPolicy()


class JobSetExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A JobSet of jobset.x-k8s.io/v1alpha2."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSetSpec = _JobSetSpec()


class _Replicas(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1


class _MinAvailable(KubernetesExcerpt, frozen=True, kw_only=True):
    min_available: int | None = None


class _MPIJobSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    mpi_replica_specs: dict[str, _Replicas] = {}
    launcher_creation_policy: str = "AtStartup"


class MPIJobExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """An MPIJob of kubeflow.org/v2beta1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _MPIJobSpec = _MPIJobSpec()


class _RunPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    scheduling_policy: _MinAvailable = _MinAvailable()
    active_deadline_seconds: int | None = None


class _KubeflowSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    run_policy: _RunPolicy = _RunPolicy()
    jax_replica_specs: dict[str, _Replicas] = {}
    mpi_replica_specs: dict[str, _Replicas] = {}
    paddle_replica_specs: dict[str, _Replicas] = {}
    pytorch_replica_specs: dict[str, _Replicas] = {}
    tf_replica_specs: dict[str, _Replicas] = {}
    xgb_replica_specs: dict[str, _Replicas] = {}

    @property
    def replica_specs(self) -> dict[str, _Replicas]:
        """Return those of its kind; the others are empty."""
        return {
            **self.jax_replica_specs,
            **self.mpi_replica_specs,
            **self.paddle_replica_specs,
            **self.pytorch_replica_specs,
            **self.tf_replica_specs,
            **self.xgb_replica_specs,
        }


class KubeflowExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A job of kubeflow.org/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _KubeflowSpec = _KubeflowSpec()


class _VolcanoDependsOn(KubernetesExcerpt, frozen=True, kw_only=True):
    name: tuple[str, ...] = ()


class _VolcanoTask(KubernetesExcerpt, frozen=True, kw_only=True):
    name: str = ""
    replicas: int = 1
    min_available: int | None = None
    depends_on: _VolcanoDependsOn = _VolcanoDependsOn()

    @property
    def least(self) -> int:
        """Return how many of its pods are needed, as Volcano's webhook writes it."""
        return self.replicas if self.min_available is None else self.min_available


class _VolcanoSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    min_available: int | None = None
    tasks: tuple[_VolcanoTask, ...] = ()


class VolcanoExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A Job of batch.volcano.sh/v1alpha1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _VolcanoSpec = _VolcanoSpec()


class _PodSet(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1


class WrappedComponent(KubernetesExcerpt, frozen=True, kw_only=True):
    """An object that an AppWrapper makes."""

    template: dict[str, Any] = {}
    pod_sets: tuple[_PodSet, ...] = ()


class _AppWrapperSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    components: tuple[WrappedComponent, ...] = ()


class AppWrapperExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """An AppWrapper of workload.codeflare.dev."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _AppWrapperSpec = _AppWrapperSpec()


class _WorkerGroup(KubernetesExcerpt, frozen=True, kw_only=True):
    group_name: str = ""
    replicas: int = 0
    min_replicas: int = 0
    max_replicas: int | None = None
    num_of_hosts: int = 1
    suspend: bool = False

    @property
    def count(self) -> int:
        """Pods of the group, as KubeRay counts them."""
        wanted = max(self.replicas, self.min_replicas)
        if self.max_replicas is not None:
            wanted = max(self.min_replicas, min(wanted, self.max_replicas))
        return 0 if self.suspend else wanted * self.num_of_hosts

    @property
    def least(self) -> int | None:
        """Pods with which it begins where an autoscaler decides; None: all of them.

        The hosts of a replica are of use together alone.
        """
        least = max(self.min_replicas, 1)
        return least if self.num_of_hosts == 1 and least < self.count else None


class _RayClusterSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    worker_group_specs: tuple[_WorkerGroup, ...] = ()
    enable_in_tree_autoscaling: bool = False


class RayClusterExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A RayCluster of ray.io/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _RayClusterSpec = _RayClusterSpec()


class _CoschedulingSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    min_member: int = 1


class CoschedulingExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A PodGroup of scheduling.x-k8s.io/v1alpha1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _CoschedulingSpec = _CoschedulingSpec()


class _WorkloadRef(KubernetesExcerpt, frozen=True, kw_only=True):
    workload_name: str = ""


class _DisruptionMode(KubernetesExcerpt, frozen=True, kw_only=True):
    all: _Anything | None = None


class _GroupSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: _WorkloadRef = _WorkloadRef()
    scheduling_policy: _SchedulingPolicy = _SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    disruption_mode: _DisruptionMode = _DisruptionMode()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None


class GroupExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    """A PodGroup or CompositePodGroup of scheduling.k8s.io."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _GroupSpec = _GroupSpec()
