"""The personas of k8s/base, and for each all that it may do, anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SYSTEM, TEAM, OTHERS = "moorings-system", "team-a", "team-b"
ANYWHERE = "*"
OURS, FOREIGN = "gpu.moorings.dev", "gpu.example.com"

READ = "get list watch"
WRITE = "create update patch delete deletecollection"
ALL = f"{READ} {WRITE}"
DRA = "resource.k8s.io"
OUR_DRIVERS = "gpu.moorings.dev nic.moorings.dev"

Table = Mapping[str, str]
"""`resource.group` -> verbs, with ` = names` where they are for these alone."""


class Persona(NamedTuple):
    """A user, the role it is bound to where, and all that it may do."""

    user: str
    may: Mapping[str, Table]
    role: str = ""
    """Bound by k8s/base itself if empty."""
    where: str = ANYWHERE


PERSONAS = (
    Persona(
        "system:serviceaccount:moorings-system:publisher",
        {
            ANYWHERE: {
                "namespaces": READ,
                "nodes": READ,
                "pods": f"{READ} patch delete",
                "pods/eviction": "create",
                "poddisruptionbudgets.policy": "list",
                "persistentvolumeclaims": READ,
                "persistentvolumes": READ,
                "storageclasses.storage.k8s.io": READ,
                "events.events.k8s.io": "create",
                f"deviceclasses.{DRA}": READ,
                f"devicetaintrules.{DRA}": f"{READ} create patch delete",
                f"resourceslices.{DRA}": f"{READ} create patch delete",
                f"resourceclaims.{DRA}": f"{READ} patch update",
                f"resourceclaimtemplates.{DRA}": READ,
                f"resourceclaims/status.{DRA}": "patch update",
                f"resourceclaims/binding.{DRA}": "patch update",
                f"resourceclaims/driver.{DRA}": f"arbitrary-node:patch = {OUR_DRIVERS}",
                "gangs.moorings.dev": READ,
                "gangs/status.moorings.dev": "patch",
                "jobs.batch": "list watch",
                "statefulsets.apps": "list watch",
                "jobsets.jobset.x-k8s.io": "list watch",
                "jaxjobs.kubeflow.org": "list watch",
                "mpijobs.kubeflow.org": "list watch",
                "paddlejobs.kubeflow.org": "list watch",
                "pytorchjobs.kubeflow.org": "list watch",
                "tfjobs.kubeflow.org": "list watch",
                "xgboostjobs.kubeflow.org": "list watch",
                "jobs.batch.volcano.sh": "list watch",
                "appwrappers.workload.codeflare.dev": "list watch",
                "rayclusters.ray.io": "list watch",
                "podgroups.scheduling.k8s.io": "list watch",
                "compositepodgroups.scheduling.k8s.io": "list watch",
                "podgroups.scheduling.x-k8s.io": "list watch",
                "clusterqueues.kueue.x-k8s.io": "list watch",
                "cohorts.kueue.x-k8s.io": "list watch",
                "localqueues.kueue.x-k8s.io": "list watch",
                "resourceflavors.kueue.x-k8s.io": "list watch",
            },
            SYSTEM: {
                "leases.coordination.k8s.io": ("create; get patch = moorings-publisher")
            },
        },
    ),
    Persona(
        "system:serviceaccount:moorings-system:nodeagent",
        {
            ANYWHERE: {
                f"resourceclaims.{DRA}": "get",
                f"resourceclaims/status.{DRA}": "patch",
                f"resourceclaims/driver.{DRA}": (
                    f"associated-node:patch = {OUR_DRIVERS}"
                ),
            }
        },
    ),
    Persona(
        "system:serviceaccount:moorings-system:authcallout",
        {
            ANYWHERE: {
                "tokenreviews.authentication.k8s.io": "create",
                "subjectaccessreviews.authorization.k8s.io": "create",
            }
        },
    ),
    Persona("system:serviceaccount:moorings-system:solver", {}),
    Persona("system:serviceaccount:moorings-system:nats", {}),
    Persona(
        "author",
        {
            TEAM: {
                "gangs.moorings.dev": ALL,
                "gangs/status.moorings.dev": "get",
                f"resourceclaims.{DRA}": ALL,
                f"resourceclaimtemplates.{DRA}": ALL,
            }
        },
        role="moorings-gang-author",
        where=TEAM,
    ),
    Persona(
        "viewer",
        {
            TEAM: {
                "gangs.moorings.dev": READ,
                "gangs/status.moorings.dev": "get",
                f"resourceclaims.{DRA}": READ,
                f"resourceclaimtemplates.{DRA}": READ,
            }
        },
        role="moorings-gang-viewer",
        where=TEAM,
    ),
    Persona(
        "class-viewer",
        {ANYWHERE: {f"deviceclasses.{DRA}": READ}},
        role="moorings-deviceclass-viewer",
    ),
    Persona(
        "operator",
        {
            ANYWHERE: {
                "gangs.moorings.dev": f"{READ} patch delete",
                "gangs/status.moorings.dev": "get",
                f"deviceclasses.{DRA}": READ,
                f"devicetaintrules.{DRA}": READ,
                f"resourceslices.{DRA}": READ,
                f"resourceclaimtemplates.{DRA}": READ,
                f"resourceclaims.{DRA}": READ,
                "events": READ,
                "namespaces": READ,
                "nodes": READ,
                "pods": READ,
                **{
                    f"{kind}admission{what}.admissionregistration.k8s.io": READ
                    for kind in ("mutating", "validating")
                    for what in ("policies", "policybindings")
                },
            },
            SYSTEM: {
                "configmaps": READ,
                "pods": "delete",
                "pods/log": "get",
                "daemonsets.apps": f"{READ} patch",
                "deployments.apps": f"{READ} patch",
                "deployments/scale.apps": "get update patch",
                "statefulsets.apps": f"{READ} patch",
                "leases.coordination.k8s.io": READ,
            },
        },
        role="moorings-cluster-operator",
    ),
    Persona(
        "device-admin",
        {
            ANYWHERE: {
                f"deviceclasses.{DRA}": ALL,
                f"devicetaintrules.{DRA}": ALL,
                f"resourceslices.{DRA}": ALL,
            }
        },
        role="moorings-device-admin",
    ),
)
BY_NAME = {persona.user.rpartition(":")[2]: persona for persona in PERSONAS}
