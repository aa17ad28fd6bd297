"""Objects of any version of `resource.k8s.io` -> v1, to be applied elsewhere. Pure.

What a cluster wrote into an object stays behind, and so do the objects that a cluster
or a driver makes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from contracts.alpha.claims import CLAIM_PARAMETERS, CLASS_PARAMETERS
from contracts.alpha.convert import Converted, convert
from contracts.alpha.said import Json, list_in, mapping_in, subject_of
from contracts.errors import ContractsError
from contracts.kubernetes import versions
from contracts.kubernetes.decode import (
    NAME_OUTSIDE,
    V1,
    V1BETA1,
    V1BETA2,
    decode_object,
    find_refused_fields,
)
from contracts.validate import Validated, validate
from contracts.workload import Pod, Workload
from moorings import admission_rules
from moorings.plan.objects import PlanObject, with_defaults
from moorings.plan.reading import find_misspelt_claims

Say = Callable[[str], None]
PLURALS = frozenset(
    (
        "deviceclasses",
        "devicetaintrules",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
    )
)
OLDER = (V1BETA1, V1BETA2)
_OF_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
_UID_OF_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Migration:
    """Goes through documents and counts what could not be said."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.refused = 0
        """Objects that v1 cannot say, or that its API server would refuse."""

    def migrate(self, documents: Iterable[tuple[str, Any]]) -> Iterator[Json]:
        """Yield the objects in v1; what is left out is named with a reason."""
        for converted in convert(self._leave_out(documents)):
            written = self._take(converted)
            if written is None:
                continue
            for remark in _list_blind(written):
                self._say(f"note: {converted.source}: {remark}")
            faults = list(_find_faults(written))
            for fault in faults:
                self._say(f"error: {converted.source}: {fault}")
            if faults:
                self.refused += 1
            else:
                yield written

    def _leave_out(
        self, documents: Iterable[tuple[str, Any]]
    ) -> Iterator[tuple[str, Any]]:
        """Yield what authors wrote; nothing of the rest can then be refused."""
        for source, raw in documents:
            if not isinstance(raw, dict):
                yield source, raw
                continue
            why = _find_maker(raw)
            if why:
                self._say(f"note: {source}: {subject_of(raw)}: {why}")
            else:
                yield source, without_server_fields(raw)

    def _take(self, converted: Converted) -> Json | None:
        for notice in converted.list_notices():
            self._say(notice)
        value = converted.value
        if value is None:
            self.refused += converted.is_refused
            return None
        if not isinstance(value, dict):
            self._say(f"error: {converted.source}: expected an object")
            self.refused += 1
            return None
        if value.get("apiVersion") not in OLDER:
            return value
        version = value["apiVersion"].rpartition("/")[2]
        misplaced: list[str] = []
        raised = versions.to_v1(str(value.get("kind")), version, value, misplaced)
        for field in misplaced:
            text = f"{subject_of(value)}: {field}: unknown field"
            self._say(f"error: {converted.source}: {text}")
        if misplaced:
            self.refused += 1
            return None
        return {**raised, "apiVersion": V1}


def without_server_fields(raw: Json) -> Json:
    """Leave out the status, a pod's node, and the metadata that a cluster fills in."""
    written = {key: value for key, value in raw.items() if key != "status"}
    metadata = mapping_in(raw, "metadata")
    if "uid" in metadata and raw.get("kind") == "Pod":
        spec = mapping_in(raw, "spec")
        spec.pop("nodeName", None)  # or no scheduler would allocate its claims
        written["spec"] = spec
    if "uid" in metadata and raw.get("kind") == "Job":
        metadata = _without_uid(metadata)
        written["spec"] = _without_selector(mapping_in(raw, "spec"))
    for field in _OF_SERVER:
        metadata.pop(field, None)
    annotations = mapping_in(metadata, "annotations")
    if annotations.pop(_APPLIED, None) is not None:
        metadata["annotations"] = annotations
        if not annotations:
            del metadata["annotations"]
    return {**written, "metadata": metadata} if metadata else written


def _without_selector(spec: Json) -> Json:
    """Leave out how a Job finds its pods, by its uid; a new one has another."""
    if spec.get("manualSelector"):
        return spec
    spec.pop("selector", None)
    template = mapping_in(spec, "template")
    template["metadata"] = _without_uid(mapping_in(template, "metadata"))
    return {**spec, "template": template}


def _without_uid(metadata: Json) -> Json:
    labels = mapping_in(metadata, "labels")
    kept = {key: value for key, value in labels.items() if key not in _UID_OF_JOB}
    return {**metadata, "labels": kept} if labels else metadata


def _find_maker(raw: Json) -> str:
    """Return who makes such an object by itself; empty: its author does."""
    if raw.get("kind") == "ResourceSlice":
        return "not written: drivers publish their own; install their release for v1"
    if raw.get("kind") in (CLAIM_PARAMETERS, CLASS_PARAMETERS):
        return ""  # of a vendor's controller; claims and classes refer to them
    for owner in list_in(raw, "metadata", "ownerReferences"):
        if isinstance(owner, dict) and owner.get("controller") is True:
            return f"not written: {owner.get('kind')} {owner.get('name')} makes it"
    return ""


def _list_blind(raw: Json) -> Iterator[str]:
    """Name what a policy or webhook will not see where v1 alone is served."""
    if raw.get("kind") in admission_rules.KINDS:
        for rule in admission_rules.find_blind_rules(raw, {"v1": PLURALS}):
            yield f"{subject_of(raw)} {rule}; {rule.remedy}"


def _find_faults(raw: Json) -> Iterator[str]:
    """Name what an API server of v1 would refuse."""
    if raw.get("apiVersion") != V1:
        yield from _find_faults_of_others(raw)
        return
    try:
        decoded = decode_object(raw)
    except ContractsError as error:
        yield str(error)
        return
    for field in find_refused_fields(decoded):
        yield f"{subject_of(raw)}: {field}: unknown field"
    value = with_defaults(PlanObject.of("", raw, decoded)).decoded.value
    if isinstance(value, Validated):
        for violation in validate(value):
            yield f"{subject_of(raw)}: {violation}"


def _find_faults_of_others(raw: Json) -> Iterator[str]:
    """Name what is refused of any kind, and claims of pods under a misspelt field."""
    if "metadata" not in raw and "name" in raw:
        yield f"{subject_of(raw)}: name: {NAME_OUTSIDE}"
        return
    try:
        decoded = decode_object(raw)
    except ContractsError:
        return
    if isinstance(decoded.value, Pod | Workload):
        for path in find_misspelt_claims(raw, ""):
            yield f"{subject_of(raw)}: {path}: unknown field"
