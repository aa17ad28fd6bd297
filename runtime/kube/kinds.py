"""The kinds of objects that Moorings reads and writes, and where they are served.

A kind knows its group, version and path; which version a cluster serves is found out
once (`choose_kinds`) and then travels with the kind. Knows no connection.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import quote

from msgspec import Struct, structs

from contracts.kubernetes.decode import RESOURCE_GROUP
from contracts.names import API_VERSION
from contracts.pods.membership import (
    COMPOSITE,
    KUBEFLOW_JOBS,
    MPI_JOB_V1,
    VOLCANO_GROUP,
    VOLCANO_JOB,
)

VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Of resource.k8s.io, newest first: what `contracts.kubernetes.decode` can read."""
SCHEDULING_GROUP = "scheduling.k8s.io"
POD_GROUP_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
TAINT_RULE_VERSIONS = ("v1", "v1beta2", "v1alpha3")


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of object in one version."""

    group: str = ""
    """Empty: the core group."""
    version: str = "v1"
    plural: str
    name: str
    """As in `kind`, such as `ResourceClaim`."""
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def at(self, version: str) -> Kind:
        """Return the same kind in another version."""
        return structs.replace(self, version=version)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object, of a namespace's collection, or of all."""
        parts = ["/apis" if self.group else "/api", self.api_version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural]
        if name:
            parts += [quote(name, safe="")]
        if subresource:
            parts += [subresource]
        return "/".join(parts)

    def path_of(self, key: str, subresource: str = "") -> str:
        """Return the path of the object with a key (`name` or `namespace/name`)."""
        namespace, _, name = key.rpartition("/")
        return self.path(namespace, name, subresource)


POD = Kind(plural="pods", name="Pod", namespaced=True)
POD_DISRUPTION_BUDGET = Kind(
    group="policy",
    plural="poddisruptionbudgets",
    name="PodDisruptionBudget",
    namespaced=True,
)
NODE = Kind(plural="nodes", name="Node")
NAMESPACE = Kind(plural="namespaces", name="Namespace")
PERSISTENT_VOLUME_CLAIM = Kind(
    plural="persistentvolumeclaims", name="PersistentVolumeClaim", namespaced=True
)
PERSISTENT_VOLUME = Kind(plural="persistentvolumes", name="PersistentVolume")
STORAGE_CLASS = Kind(
    group="storage.k8s.io", plural="storageclasses", name="StorageClass"
)
STORAGE_KINDS = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS)
"""They bind pods to nodes; they do not travel on the bus."""
EVENT = Kind(group="events.k8s.io", plural="events", name="Event", namespaced=True)
LEASE = Kind(
    group="coordination.k8s.io", plural="leases", name="Lease", namespaced=True
)
GANG = Kind(
    group=API_VERSION.partition("/")[0],
    version=API_VERSION.partition("/")[2],
    plural="gangs",
    name="Gang",
    namespaced=True,
)
"""Its CRD may be absent, and may come and go while we run."""
RESOURCE_SLICE = Kind(
    group=RESOURCE_GROUP, plural="resourceslices", name="ResourceSlice"
)
DEVICE_CLASS = Kind(group=RESOURCE_GROUP, plural="deviceclasses", name="DeviceClass")
DEVICE_TAINT_RULE = Kind(
    group=RESOURCE_GROUP, plural="devicetaintrules", name="DeviceTaintRule"
)
RESOURCE_CLAIM = Kind(
    group=RESOURCE_GROUP,
    plural="resourceclaims",
    name="ResourceClaim",
    namespaced=True,
)
RESOURCE_CLAIM_TEMPLATE = Kind(
    group=RESOURCE_GROUP,
    plural="resourceclaimtemplates",
    name="ResourceClaimTemplate",
    namespaced=True,
)


KUEUE_WORKLOAD = Kind(
    group="kueue.x-k8s.io",
    version="v1beta2",
    plural="workloads",
    name="Workload.kueue.x-k8s.io",
    namespaced=True,
)
ADMISSION_CHECK = Kind(
    group="kueue.x-k8s.io",
    version="v1beta2",
    plural="admissionchecks",
    name="AdmissionCheck",
)
RESOURCE_FLAVOR = Kind(
    group="kueue.x-k8s.io",
    version="v1beta2",
    plural="resourceflavors",
    name="ResourceFlavor",
)
CLUSTER_QUEUE = Kind(
    group="kueue.x-k8s.io",
    version="v1beta2",
    plural="clusterqueues",
    name="ClusterQueue",
)
COHORT = Kind(
    group="kueue.x-k8s.io", version="v1beta2", plural="cohorts", name="Cohort"
)
LOCAL_QUEUE = Kind(
    group="kueue.x-k8s.io",
    version="v1beta2",
    plural="localqueues",
    name="LocalQueue",
    namespaced=True,
)
QUEUE_KINDS = (CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, RESOURCE_FLAVOR)
"""Followed where the solver counts quota, not Kueue."""
KUEUE_KINDS = (KUEUE_WORKLOAD, ADMISSION_CHECK, RESOURCE_FLAVOR)
"""Followed where we answer for AdmissionChecks of Kueue."""
POD_GROUP = Kind(
    group=SCHEDULING_GROUP, plural="podgroups", name="PodGroup", namespaced=True
)
"""Kubernetes' own; in `ServedKinds` in the version that is served."""
COMPOSITE_POD_GROUP = Kind(
    group=SCHEDULING_GROUP,
    plural="compositepodgroups",
    name=COMPOSITE,
    namespaced=True,
)
DEPLOYMENT = Kind(
    group="apps", plural="deployments", name="Deployment", namespaced=True
)
GANG_OWNERS = (
    Kind(group="batch", plural="jobs", name="Job", namespaced=True),
    Kind(group="apps", plural="statefulsets", name="StatefulSet", namespaced=True),
    Kind(
        group="jobset.x-k8s.io",
        version="v1alpha2",
        plural="jobsets",
        name="JobSet",
        namespaced=True,
    ),
    Kind(
        group="kubeflow.org",
        version="v2beta1",
        plural="mpijobs",
        name="MPIJob",
        namespaced=True,
    ),
    *(
        Kind(
            group="kubeflow.org",
            plural=f"{kind.lower()}s",
            name=MPI_JOB_V1 if kind == "MPIJob" else kind,
            namespaced=True,
        )
        for kind in KUBEFLOW_JOBS
    ),
    Kind(
        group=VOLCANO_GROUP,
        version="v1alpha1",
        plural="jobs",
        name=VOLCANO_JOB,
        namespaced=True,
    ),
    Kind(
        group="workload.codeflare.dev",
        version="v1beta2",
        plural="appwrappers",
        name="AppWrapper",
        namespaced=True,
    ),
    Kind(group="ray.io", plural="rayclusters", name="RayCluster", namespaced=True),
    Kind(
        group="scheduling.x-k8s.io",
        version="v1alpha1",
        plural="podgroups",
        name="PodGroup.scheduling.x-k8s.io",
        namespaced=True,
    ),
)
"""Kinds that say how many pods a gang has; any may be absent, or not be ours to
read. Named as `contracts.pods.membership:OwnerKey` names them."""


_FIRST_WITH_TIMES = 34
"""KEP-5007: `allocationTimestamp` in every version of the API that 1.34 serves."""


class ServedKinds(Struct, frozen=True, kw_only=True):
    """The kinds of resource.k8s.io in the newest version that both sides know."""

    release: str = ""
    """Of the API server, such as `1.37`; empty: it does not say."""

    resource_slice: Kind
    device_class: Kind
    resource_claim: Kind
    resource_claim_template: Kind
    device_taint_rule: Kind | None
    """None: not served; devices are tainted in their slices only."""
    pod_group: Kind | None = None
    """Kubernetes' own PodGroup (KEP-4671); None: not served."""
    composite_pod_group: Kind | None = None
    """A group of PodGroups (KEP-6012); None: not served."""

    @property
    def has_allocation_times(self) -> bool:
        """True if allocations of claims have a time, as since Kubernetes 1.34.

        Before, the API server refuses the field; since, no pod binds without it.
        """
        minor = self.release.rpartition(".")[2]
        return not minor.isdecimal() or int(minor) >= _FIRST_WITH_TIMES

    @property
    def followed(self) -> tuple[Kind, ...]:
        """The kinds that a publisher follows everywhere, besides Gangs."""
        kinds = (
            *(POD, NODE, NAMESPACE),
            *(self.resource_slice, self.device_class),
            *(self.resource_claim, self.resource_claim_template),
        )
        rules = self.device_taint_rule
        return kinds if rules is None else (*kinds, rules)


def choose_kinds(
    plurals_by_version: Mapping[str, Container[str]],
    versions: tuple[str, ...] = VERSIONS,
    pod_groups: Mapping[str, Container[str]] = {},
    release: str = "",
) -> ServedKinds | None:
    """Choose the first of some versions that is served; None: the cluster has none.

    `plurals_by_version["v1"]` names what the cluster serves in resource.k8s.io/v1,
    `pod_groups` the same of scheduling.k8s.io; `release` is the API server's.
    """
    version = _newest_version(versions, RESOURCE_CLAIM, plurals_by_version)
    rules = _newest_version(TAINT_RULE_VERSIONS, DEVICE_TAINT_RULE, plurals_by_version)
    groups = _newest_version(POD_GROUP_VERSIONS, POD_GROUP, pod_groups)
    composites = _newest_version(POD_GROUP_VERSIONS, COMPOSITE_POD_GROUP, pod_groups)
    if version is None:
        return None
    return ServedKinds(
        release=release,
        resource_slice=RESOURCE_SLICE.at(version),
        device_class=DEVICE_CLASS.at(version),
        resource_claim=RESOURCE_CLAIM.at(version),
        resource_claim_template=RESOURCE_CLAIM_TEMPLATE.at(version),
        device_taint_rule=None if rules is None else DEVICE_TAINT_RULE.at(rules),
        pod_group=None if groups is None else POD_GROUP.at(groups),
        composite_pod_group=None
        if composites is None
        else COMPOSITE_POD_GROUP.at(composites),
    )


def key_of(raw: Mapping[str, Any]) -> str:
    """Return the key of an object: `name`, or `namespace/name` where it has one."""
    metadata = raw["metadata"]
    namespace, name = metadata.get("namespace"), metadata["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def _newest_version(
    versions: tuple[str, ...],
    kind: Kind,
    plurals_by_version: Mapping[str, Container[str]],
) -> str | None:
    for version in versions:
        if kind.plural in plurals_by_version.get(version, ()):
            return version
    return None
