"""A claim in protobuf gets what a patch adds, and nothing else in it changes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from runtime.kube.protobuf import extend

_FIELDS = {
    "TypeMeta": {"apiVersion": 1, "kind": 2},
    "Entry": {"key": 1, "value": 2},
    "Spec": {"text": 1},
    "User": {"resource": 3, "name": 4, "uid": 5},
}
MAGIC = b"k8s\x00"
ADDED = {
    "uid": "u",
    "resourceVersion": "7",
    "finalizers": ["theirs", "ours"],
    "annotations": {"a": "b"},
}
POD = {"resource": "pods", "name": "p", "uid": "p-uid"}
OTHER = {"resource": "pods", "name": "o", "uid": "o-uid"}


def _messages() -> dict[str, Any]:
    """Kubernetes' messages, as far as they matter, by the library of protobuf."""
    file = descriptor_pb2.FileDescriptorProto(name="k8s.proto", package="k8s")

    def add(message: str, name: str, number: int, kind: int, of: str = "") -> None:
        found = [one for one in file.message_type if one.name == message]
        described = found[0] if found else file.message_type.add(name=message)
        field = described.field.add(name=name, number=number, type=kind)
        repeated = name in {"annotations", "finalizers", "reservedFor"}
        field.label = 3 if repeated else 1  # type: ignore[assignment]
        if of:
            field.type_name = f".k8s.{of}"

    string, inner, octets, integer, fixed = 9, 11, 12, 3, 6
    for message, fields in _FIELDS.items():
        for name, number in fields.items():
            add(message, name, number, string)
    add("Meta", "name", 1, string)
    add("Meta", "uid", 5, string)
    add("Meta", "resourceVersion", 6, string)
    add("Meta", "generation", 7, integer)
    add("Meta", "fixed", 8, fixed)
    add("Meta", "annotations", 12, inner, "Entry")
    add("Meta", "finalizers", 14, string)
    add("Claim", "metadata", 1, inner, "Meta")
    add("Claim", "spec", 2, inner, "Spec")
    add("Claim", "status", 3, inner, "Status")
    add("Status", "allocation", 1, string)
    add("Status", "reservedFor", 2, inner, "User")
    add("Unknown", "typeMeta", 1, inner, "TypeMeta")
    add("Unknown", "raw", 2, octets)
    add("Unknown", "contentType", 4, string)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = (one.name for one in file.message_type)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"k8s.{name}"))
        for name in names
    }


MESSAGES = _messages()


def written(spec: str, finalizers: list[str], annotations: dict[str, str]) -> bytes:
    """A claim as the API server writes it."""
    claim = MESSAGES["Claim"]()
    claim.metadata.name = "c"
    claim.metadata.uid = "old"
    claim.metadata.generation = 300
    claim.metadata.fixed = 1
    claim.metadata.finalizers.extend(finalizers)
    for key, value in annotations.items():
        claim.metadata.annotations.add(key=key, value=value)
    claim.spec.text = spec
    unknown = MESSAGES["Unknown"](raw=claim.SerializeToString())
    unknown.typeMeta.kind = "ResourceClaim"
    body: bytes = MAGIC + unknown.SerializeToString()
    return body


def read(body: bytes) -> tuple[Any, Any]:
    """The envelope and the claim, by the library."""
    assert body.startswith(MAGIC)
    unknown = MESSAGES["Unknown"].FromString(body[len(MAGIC) :])
    return unknown, MESSAGES["Claim"].FromString(unknown.raw)


@given(
    spec=st.text(max_size=300),
    finalizers=st.lists(st.sampled_from(["theirs", "x"]), unique=True),
    annotations=st.dictionaries(st.sampled_from("acd"), st.text()),
)
def test_metadata_is_added_and_the_rest_stays(
    spec: str, finalizers: list[str], annotations: dict[str, str]
) -> None:
    unknown, claim = read(
        extend(written(spec, finalizers, annotations), {"metadata": ADDED})
    )
    assert unknown.typeMeta.kind == "ResourceClaim"
    meta = claim.metadata
    assert (claim.spec.text, meta.name, meta.generation) == (spec, "c", 300)
    assert (meta.uid, meta.resourceVersion) == ("u", "7")
    assert sorted(meta.finalizers) == sorted({*finalizers, "theirs", "ours"})
    entries = {entry.key: entry.value for entry in meta.annotations}
    assert entries == annotations | {"a": "b"}


def test_what_is_no_protobuf_is_refused() -> None:
    whole = written("spec", [], {})
    for body in (b"{}", whole[:-1], MAGIC + b"\x0b", MAGIC + b"\x80"):
        with pytest.raises(ValueError, match="no protobuf"):
            extend(body, {"metadata": ADDED})


def test_who_uses_a_claim_is_added_to_those_who_do() -> None:
    """Their claim stays allocated as it is; without anybody new the status stays."""
    claim = MESSAGES["Claim"]()
    claim.status.allocation = "{ spaces }"
    claim.status.reservedFor.add(**OTHER)
    unknown = MESSAGES["Unknown"](raw=claim.SerializeToString())
    body = MAGIC + unknown.SerializeToString()
    for users in ([OTHER], [OTHER, POD]):
        patch = {"metadata": {"uid": "u"}, "status": {"reservedFor": users}}
        _, extended = read(extend(body, patch))
        names = [user.name for user in extended.status.reservedFor]
        assert names == [user["name"] for user in users]
        assert extended.status.allocation == "{ spaces }"
