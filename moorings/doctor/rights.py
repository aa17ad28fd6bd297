"""The rights that each part of Moorings needs on the API server, and those of people.

What k8s/base grants; a test holds the two together. Whoever installs Moorings in
another way grants the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from contracts.names import LEASE_NAME
from moorings.doctor.facts import Right

_READ = "get list watch"
_WRITE = "create update patch delete deletecollection"
_DRA = "resource.k8s.io"
_EVERYWHERE = ""

Rules = Mapping[str, str]
"""`resource.group` -> verbs, with ` = names` where they are for these alone."""


class Persona(Struct, frozen=True, kw_only=True):
    """A holder of rights: a service account of ours, or a role for people."""

    name: str
    everywhere: Rules = {}
    in_system: Rules = {}
    """In the namespace where Moorings is installed."""
    in_namespace: Rules = {}
    """Rights in a namespace with workloads."""

    def list_rights(self, system: str, namespace: str) -> Iterator[Right]:
        """List each right by itself, for these two namespaces."""
        for place, rules in (
            (_EVERYWHERE, self.everywhere),
            (system, self.in_system),
            (namespace, self.in_namespace),
        ):
            for what, text in rules.items():
                resource, _, group = what.partition(".")
                yield from _list_verbs(text, group, resource, place)


def _list_verbs(text: str, group: str, resource: str, place: str) -> Iterator[Right]:
    for rule in text.split(";"):
        verbs, _, names = rule.partition(" = ")
        for verb in verbs.split():
            for name in names.split() or [""]:
                yield Right(verb, group, resource, place, name)


SERVICES = (
    Persona(
        name="publisher",
        everywhere={
            "namespaces": _READ,
            "nodes": _READ,
            "pods": f"{_READ} patch delete",
            "pods/eviction": "create",
            "poddisruptionbudgets.policy": "list",
            "persistentvolumeclaims": _READ,
            "persistentvolumes": _READ,
            "storageclasses.storage.k8s.io": _READ,
            "events.events.k8s.io": "create",
            f"deviceclasses.{_DRA}": _READ,
            f"devicetaintrules.{_DRA}": f"{_READ} create patch delete",
            f"resourceslices.{_DRA}": f"{_READ} create patch delete",
            f"resourceclaims.{_DRA}": f"{_READ} patch update",
            f"resourceclaimtemplates.{_DRA}": _READ,
            f"resourceclaims/status.{_DRA}": "patch update",
            f"resourceclaims/binding.{_DRA}": "patch update",
            "gangs.moorings.dev": _READ,
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
        in_system={"leases.coordination.k8s.io": f"create; get patch = {LEASE_NAME}"},
    ),
    Persona(
        name="nodeagent",
        everywhere={
            f"resourceclaims.{_DRA}": "get",
            f"resourceclaims/status.{_DRA}": "patch",
        },
    ),
    Persona(
        name="authcallout",
        everywhere={
            "tokenreviews.authentication.k8s.io": "create",
            "subjectaccessreviews.authorization.k8s.io": "create",
        },
    ),
)
"""By service account. What they may say for a driver depends on whose drivers are
theirs, so it is not here."""

FORBIDDEN = (
    Right("get", "", "secrets"),
    Right("create", "", "pods"),
    Right("create", "", "pods/exec"),
    Right("impersonate", "", "users"),
    Right("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
)
"""Rights that none of our service accounts may have, as they include all others."""

ACCOUNTS = ("publisher", "nodeagent", "authcallout", "solver", "nats")

PEOPLE = (
    Persona(
        name="moorings-gang-author",
        in_namespace={
            "gangs.moorings.dev": f"{_READ} {_WRITE}",
            "gangs/status.moorings.dev": "get",
            f"resourceclaims.{_DRA}": f"{_READ} {_WRITE}",
            f"resourceclaimtemplates.{_DRA}": f"{_READ} {_WRITE}",
        },
    ),
    Persona(
        name="moorings-gang-viewer",
        in_namespace={
            "gangs.moorings.dev": _READ,
            "gangs/status.moorings.dev": "get",
            f"resourceclaims.{_DRA}": _READ,
            f"resourceclaimtemplates.{_DRA}": _READ,
        },
    ),
    Persona(
        name="moorings-deviceclass-viewer",
        everywhere={f"deviceclasses.{_DRA}": _READ},
    ),
    Persona(
        name="moorings-cluster-operator",
        everywhere={
            "gangs.moorings.dev": f"{_READ} patch delete",
            "gangs/status.moorings.dev": "get",
            f"deviceclasses.{_DRA}": _READ,
            f"devicetaintrules.{_DRA}": _READ,
            f"resourceslices.{_DRA}": _READ,
            f"resourceclaimtemplates.{_DRA}": _READ,
            f"resourceclaims.{_DRA}": _READ,
            "events": _READ,
            "namespaces": _READ,
            "nodes": _READ,
            "pods": _READ,
            **{
                f"{kind}admission{what}.admissionregistration.k8s.io": _READ
                for kind in ("mutating", "validating")
                for what in ("policies", "policybindings")
            },
        },
        in_system={
            "configmaps": _READ,
            "pods": "delete",
            "pods/log": "get",
            "daemonsets.apps": f"{_READ} patch",
            "deployments.apps": f"{_READ} patch",
            "deployments/scale.apps": "get update patch",
            "statefulsets.apps": f"{_READ} patch",
            "leases.coordination.k8s.io": _READ,
        },
    ),
    Persona(
        name="moorings-device-admin",
        everywhere={
            f"deviceclasses.{_DRA}": f"{_READ} {_WRITE}",
            f"devicetaintrules.{_DRA}": f"{_READ} {_WRITE}",
            f"resourceslices.{_DRA}": f"{_READ} {_WRITE}",
        },
    ),
)
"""By the role of k8s/base that grants it."""
