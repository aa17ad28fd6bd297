"""The objects of a plan, from documents; what cannot be used is named and passed by.

What decides devices must be understood, or it is an error: claims of pods, objects of
DRA in a version that is not read, documents that do not say what they are. A kind that
asks for no device and says nothing of any is passed by with a note.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

from msgspec import structs

from contracts.alpha.convert import Converted, convert
from contracts.device import DeviceAttribute, DeviceCapacity, ResourceSlice
from contracts.errors import ContractsError, DecodeError, UnknownKindError
from contracts.kubernetes.decode import (
    Decoded,
    WritableObject,
    decode_object,
    find_refused_fields,
    flatten,
)
from contracts.kubernetes.nearest import explain_unknown_field
from contracts.meta import ObjectMeta
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.kinds import find_kind
from contracts.pods.templates import without_templates
from contracts.shapes import read
from contracts.validate.slices import check_node_selection, check_resource_slice
from contracts.workload import Pod, Workload
from moorings.plan.claims import list_group_claims
from moorings.plan.extended_resources import find_extended
from moorings.plan.known_kinds import check_version, explain_passed_by, makes_no_pods
from moorings.plan.made_objects import list_made_objects, makes_objects
from moorings.plan.objects import PlanObject

Say = Callable[[str], None]
_MANY_VALUES = 1000
_CLAIMS, _ALIKE = "resourceClaims", 0.85
_WISH = re.compile(
    r"(^|\.)(resourceClaims|resources\.claims|topologySpreadConstraints)\[\d+\]\."
)
"""Where pods refer to claims and other pods: an unknown field is an unknown wish."""


class Reader:
    """Reads objects and remembers what was wrong with some."""

    def __init__(self, say: Say, *, as_stored: bool = False) -> None:
        """`as_stored`: nothing is refused that the API server would not store."""
        self._say = say
        self._as_stored = as_stored
        self._noted: set[str] = set()
        self.refused = 0
        """Objects that decide something and could not be read."""
        self.skipped = 0
        """Objects of other kinds, which were passed by."""
        self._attributes = defaultdict[
            str, dict[DeviceAttribute, DeviceAttribute] | None
        ](dict)
        """By name each value that was read, once: most devices have what others have.
        None: so many that they are looked at no more, such as those of a uuid."""
        self._capacities: dict[Hashable, dict[str, DeviceCapacity]] = {}
        """Decoded capacities of devices, by how they are written."""

    def read(self, documents: Iterable[tuple[str, Any]]) -> Iterator[PlanObject]:
        """Decode (source, raw) pairs; unknown kinds are named once.

        `raw` is parsed JSON, or Decoded where nothing in it is unknown. Objects of
        v1alpha2 and v1alpha3 come last, as v1 says them.
        """
        for converted in convert(documents):
            self._tell_remarks(converted)
            source, raw = converted.source, converted.value
            if raw is None:
                continue
            try:
                decoded = raw if isinstance(raw, Decoded) else _decode_raw(raw)
                if not self._as_stored:
                    _check_stored(decoded, find_refused_fields(decoded))
            except UnknownKindError as error:
                self._skip_object(explain_passed_by(error) or str(error))
                continue
            except ContractsError as error:
                self.refused += 1
                self._say(f"error: {source}: {error}")
                continue
            # What is of DRA or ours, lint itself says: for it objects are as stored.
            if not (self._as_stored and isinstance(decoded.value, WritableObject)):
                self._note_unknown(source, decoded)
            written = {} if isinstance(raw, Decoded) else raw
            yield self._keep_object(source, written, decoded)

    def _tell_remarks(self, converted: Converted) -> None:
        """Name what v1 cannot say of an object of an old version."""
        for notice in converted.list_notices():
            self._say(notice)
        self.refused += converted.is_refused

    def _note_unknown(self, source: str, decoded: Decoded) -> None:
        for path in decoded.unknown:
            key = f"{decoded.kind} {path}"
            if key not in self._noted:
                self._noted.add(key)
                self._say(f"note: {source}: unknown field {key}; ignored")

    def read_list(self, objects: list[Any]) -> list[PlanObject]:
        """Decode a parsed list, Lists taken apart."""
        documents = (
            (f"objects[{index}]", document)
            for index, raw in enumerate(objects)
            for document in flatten(raw)
        )
        return list(self.read(documents))

    def _keep_object(
        self, source: str, raw: Mapping[str, Any], decoded: Decoded
    ) -> PlanObject:
        if isinstance(decoded.value, ResourceSlice):
            self._share_equal(decoded.value)
        return PlanObject.of(source, raw, decoded)

    def _share_equal(self, value: ResourceSlice) -> None:
        """Let devices share what is equal: a quarter of a large cluster's memory."""
        by_name = self._attributes
        for device in value.spec.devices:
            attributes = device.attributes
            for name, attribute in attributes.items():
                known = by_name[name]
                if known is None:
                    continue
                same = attributes[name] = known.setdefault(attribute, attribute)
                if same is attribute and len(known) > _MANY_VALUES:
                    by_name[name] = None
            # Amounts are equal by value, but are printed as they are written.
            key = tuple(
                [
                    (name, each.value.text)
                    for name, each in device.capacity.items()
                    if each.request_policy is None
                ]
            )
            if len(key) == len(device.capacity):
                shared = self._capacities.setdefault(key, device.capacity)
                structs.force_setattr(device, "capacity", shared)

    def _skip_object(self, text: str) -> None:
        self.skipped += 1
        if text not in self._noted:
            self._noted.add(text)
            self._say(f"note: {text}; skipped")


def _decode_raw(raw: Any) -> Decoded:
    """Decode an object; raises more than `decode_object` does.

    Raises:
        UnknownKindError: its kind is not read, and it asks for no device.
        DecodeError: it is not understood, and may decide something.
    """
    for field in ("apiVersion", "kind"):
        if isinstance(raw, Mapping) and not isinstance(raw.get(field), str):
            raise DecodeError(_name_object(raw), field, "required")
    if isinstance(raw, Mapping) and makes_objects(raw):
        return Decoded(kind=raw["kind"], value=_read_without_pods(raw))
    if isinstance(raw, Mapping) and makes_no_pods(raw):
        raise UnknownKindError(raw["apiVersion"], raw["kind"], _name_in(raw))
    try:
        decoded = decode_object(raw)
    except UnknownKindError as error:
        if error.explained is not None:
            raise DecodeError(_name_object(raw), *error.explained) from error
        if read_gang_owner(raw) is not None:
            list(list_group_claims(raw))
            return Decoded(kind=error.kind, value=_read_without_pods(raw))
        if _has_claims(raw):
            raise _not_read(raw, "claims") from error
        for resource in find_extended(raw):
            raise _not_read(raw, resource) from error
        raise
    if isinstance(decoded.value, Pod | Workload):
        for path in find_misspelt_claims(raw, ""):
            reason = f"unknown field; did you mean {_CLAIMS}?"
            raise DecodeError(_name_object(raw), path, reason)
        for path in decoded.unknown:
            if _WISH.search(path):
                raise DecodeError(_name_object(raw), path, "unknown field")
    if isinstance(decoded.value, Workload):
        check_version(decoded.value.api_version, decoded.kind, _name_object(raw))
        entry = PlanObject.of("", raw, decoded)
        for made in list_made_objects(entry):
            read_gang_owner(made.raw)
        _check_rest(raw)
    return decoded


def _check_rest(raw: Mapping[str, Any]) -> None:
    """Require that no pods stand where templates are not read, which ask for devices.

    Raises:
        DecodeError: some do: how many they are is not known.
    """
    rest = without_templates(raw)
    wishes = ["claims"] if _has_claims(rest) else list(find_extended(rest))
    if wishes:
        raise _not_read(raw, wishes[0], " outside of its templates")


def _check_stored(decoded: Decoded, unknown: tuple[str, ...]) -> None:
    """Require what the API server would store, unless it did; of slices all of it.

    Raises:
        DecodeError: it would not: `unknown` are fields that the kind lacks, or no
            driver could publish such devices.
    """
    value = decoded.value
    what = f"{decoded.kind} {value.metadata.name}"
    if unknown:
        more = f"; and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        meant = explain_unknown_field(unknown[0])
        hint = f"; {meant}" if meant else ""
        raise DecodeError(what, unknown[0], f"unknown field{hint}{more}")
    if not isinstance(value, ResourceSlice):
        return
    violations = check_node_selection(value)
    if not value.metadata.resource_version:
        violations = chain(check_resource_slice(value), violations)
    for violation in violations:
        raise DecodeError(what, violation.field, violation.reason)


def _read_without_pods(raw: Mapping[str, Any]) -> Workload:
    """Read an object that says how many pods a gang has, and makes none."""
    metadata = read(raw.get("metadata") or {}, ObjectMeta, _name_object(raw), [])
    return Workload(api_version=raw["apiVersion"], kind=raw["kind"], metadata=metadata)


def _has_claims(value: Any) -> bool:
    """True if an object has pod specs with claims anywhere."""
    if isinstance(value, Mapping):
        patch = "resourceClaims" in str(value.get("podSpecPatch", ""))
        return (
            patch
            or bool(value.get("resourceClaims"))
            or any(map(_has_claims, value.values()))
        )
    return isinstance(value, list) and any(map(_has_claims, value))


def find_misspelt_claims(value: Any, place: str) -> Iterator[str]:
    """Go through fields of pod specs that are named almost as the claims are."""
    if isinstance(value, list):
        for at, each in enumerate(value):
            yield from find_misspelt_claims(each, f"{place}[{at}]")
    if not isinstance(value, Mapping):
        return
    for key, each in value.items():
        path = f"{place}.{key}".lstrip(".")
        if "containers" in value and key != _CLAIMS:
            likeness = SequenceMatcher(None, str(key).casefold(), _CLAIMS.casefold())
            if likeness.quick_ratio() > _ALIKE and likeness.ratio() > _ALIKE:
                yield path
        yield from find_misspelt_claims(each, path)


def _not_read(raw: Mapping[str, Any], wish: str, where: str = "") -> DecodeError:
    """Make the error that an object may make pods, and how many is not known."""
    of_kind = f"of {raw['apiVersion']} {raw['kind']}"
    known = find_kind(raw["apiVersion"], raw["kind"])
    why = "" if known is None or not known.why_alone else f"; {known.why_alone}"
    reason = f"pods with {wish} {of_kind}{where} are not supported{why}"
    return DecodeError(_name_object(raw), "kind", reason)


def _name_object(raw: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (str(raw.get("kind") or "object"), _name_in(raw))))


def _name_in(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return str(name or "")
