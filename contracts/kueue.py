"""Queues and quotas in Kueue's words, as far as Moorings counts by them.

Fields of v1beta2; `contracts/kubernetes/versions.py` moves those of v1beta1. A field
that decides and is not counted here is listed by `list_uncounted`, so that nobody takes
silence for a yes.

Source: kueue.x-k8s.io/v1beta2 and config.kueue.x-k8s.io/v1beta2 (Kueue v0.19).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.gang import NodeToleration
from contracts.labels import LabelSelector
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from contracts.structs import Int32, KubernetesExcerpt, KubernetesStruct
from contracts.workload import NodeTaint

GROUP = "kueue.x-k8s.io"
QUEUE_NAME = f"{GROUP}/queue-name"
"""Label: the LocalQueue of a pod, a Job or a Gang."""
PODSET = f"{GROUP}/podset"
"""Label that Kueue's controllers set on pods whose Workload they admitted."""
MANAGED = f"{GROUP}/managed"
"""Label that Kueue's webhook sets on pods which it made a Workload for."""
DEFAULT_QUEUE = "default"
"""The LocalQueue of whoever names none, where there is one."""
STRICT = "StrictFIFO"
NONE, NO_PARENT = "None", ""
NEVER = "Never"
LOWER_PRIORITY = "LowerPriority"


class ResourceAmounts(KubernetesStruct, frozen=True, kw_only=True):
    """The quota of one resource in a flavor."""

    name: str = ""
    nominal_quota: Quantity = Quantity.of_nano(0)
    borrowing_limit: Quantity | None = None
    """Most that is held beyond the nominal quota; None: all that others lend."""
    lending_limit: Quantity | None = None
    """Most of the nominal quota that others may hold; None: all of it."""


class FlavorQuotas(KubernetesStruct, frozen=True, kw_only=True):
    """The quotas of one flavor."""

    name: str = ""
    resources: tuple[ResourceAmounts, ...] = ()


class ResourceGroup(KubernetesStruct, frozen=True, kw_only=True):
    """Resources that are taken from one flavor together, the first that will do."""

    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class FairSharing(KubernetesStruct, frozen=True, kw_only=True):
    """The weight of a queue or a cohort among those that borrow."""

    weight: Quantity | None = None
    """None: 1; with 0 everybody else who borrows comes first."""


class FlavorFungibility(KubernetesStruct, frozen=True, kw_only=True):
    """Which flavor is taken where the first would do only by borrowing."""

    when_can_borrow: str = ""
    """`TryNextFlavor`: one without borrowing first; else the first that does."""
    when_can_preempt: str = ""
    preference: str = ""


class BorrowWithinCohort(KubernetesStruct, frozen=True, kw_only=True):
    """Whom a gang may end that borrows itself."""

    policy: str = NEVER
    """`Never`, or `LowerPriority`."""
    max_priority_threshold: Int32 | None = None
    """Only gangs of this priority or a lower one; None: any lower than its own."""


class QueuePreemption(KubernetesStruct, frozen=True, kw_only=True):
    """Whom gangs of a queue may end."""

    reclaim_within_cohort: str = NEVER
    """Gangs of other queues that borrow, within its own quota: `Never`,
    `LowerPriority` or `Any`."""
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()
    within_cluster_queue: str = NEVER
    """Gangs of its own queue: `Never`, `LowerPriority` or
    `LowerOrNewerEqualPriority`."""


class ClusterQueueSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a ClusterQueue."""

    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: str = ""
    queueing_strategy: str = ""
    """`StrictFIFO`, or `BestEffortFIFO` (the default)."""
    namespace_selector: LabelSelector | None = None
    """Whose gangs may use it; None: nobody's."""
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: QueuePreemption = QueuePreemption()
    admission_checks: tuple[str, ...] = ()
    admission_checks_strategy: dict[str, Any] = {}
    stop_policy: str = NONE
    """`None`, `Hold` or `HoldAndDrain`."""
    fair_sharing: FairSharing = FairSharing()
    admission_scope: dict[str, Any] = {}
    concurrent_admission_policy: dict[str, Any] = {}


class ClusterQueue(KubernetesStruct, frozen=True, kw_only=True):
    """Quotas of those whose LocalQueues name it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()


class CohortSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a Cohort."""

    parent_name: str = NO_PARENT
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing = FairSharing()


class Cohort(KubernetesStruct, frozen=True, kw_only=True):
    """ClusterQueues and Cohorts that lend to each other."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CohortSpec = CohortSpec()


class LocalQueueSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a LocalQueue."""

    cluster_queue: str = ""
    stop_policy: str = NONE
    fair_sharing: FairSharing = FairSharing()


class LocalQueue(KubernetesStruct, frozen=True, kw_only=True):
    """The name by which a namespace uses a ClusterQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()


class ResourceFlavorSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a ResourceFlavor."""

    node_labels: dict[str, str] = {}
    node_taints: tuple[NodeTaint, ...] = ()
    tolerations: tuple[NodeToleration, ...] = ()
    topology_name: str = ""


class ResourceFlavor(KubernetesStruct, frozen=True, kw_only=True):
    """The nodes that a quota is of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class WorkloadPriorityClass(KubernetesStruct, frozen=True, kw_only=True):
    """A priority by name."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0


class CapacitySource(KubernetesStruct, frozen=True, kw_only=True):
    """The capacity by which shares of devices are counted."""

    name: str = ""
    driver: str = ""
    device_selector: dict[str, Any] = {}


class DeviceClassSource(KubernetesStruct, frozen=True, kw_only=True):
    """What of a device is counted, where it is not devices."""

    counter: dict[str, Any] | None = None
    capacity: CapacitySource | None = None


class DeviceClassMapping(KubernetesStruct, frozen=True, kw_only=True):
    """The name that quotas have for the devices of some DeviceClasses."""

    name: str = ""
    device_class_names: tuple[str, ...] = ()
    sources: tuple[DeviceClassSource, ...] = ()


class ConfigurationResources(KubernetesExcerpt, frozen=True, kw_only=True):
    """What Kueue's Configuration says of resources."""

    device_class_mappings: tuple[DeviceClassMapping, ...] = ()


class Configuration(KubernetesExcerpt, frozen=True, kw_only=True):
    """Kueue's own configuration, as far as it names devices."""

    metadata: ObjectMeta = ObjectMeta()
    resources: ConfigurationResources = ConfigurationResources()


QueueObject = (
    ClusterQueue
    | Cohort
    | LocalQueue
    | ResourceFlavor
    | WorkloadPriorityClass
    | Configuration
)


def queue_label(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the label that names a LocalQueue, alone; empty: there is none."""
    return {QUEUE_NAME: labels[QUEUE_NAME]} if labels.get(QUEUE_NAME) else {}


def list_uncounted(queue: ClusterQueue) -> tuple[str, ...]:
    """List the fields of a ClusterQueue that may say no where nobody here would."""
    spec = queue.spec
    strategy = spec.admission_checks_strategy.get("admissionChecks")
    fields = {
        "spec.admissionChecks": spec.admission_checks,
        "spec.admissionChecksStrategy": strategy,
    }
    return tuple(field for field, value in fields.items() if value)
