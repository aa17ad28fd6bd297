"""ObjectMeta, as far as Moorings reads or writes it."""

from __future__ import annotations

from contracts.structs import Int64, KubernetesExcerpt


class OwnerReference(KubernetesExcerpt, frozen=True, kw_only=True):
    """The object that another object lives and dies with."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(KubernetesExcerpt, frozen=True, kw_only=True):
    """Names, labels and versions of a Kubernetes object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference:
        """The controller of the object; an empty reference if there is none."""
        owners = self.owner_references
        return next((owner for owner in owners if owner.controller), OwnerReference())

    @property
    def version_number(self) -> int:
        """The resourceVersion; those of one kind compare as numbers (KEP-5504)."""
        text = self.resource_version
        return int(text) if text.isdecimal() else 0
