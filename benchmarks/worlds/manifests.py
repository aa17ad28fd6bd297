"""A drawn cluster and its gangs as the objects that `kubectl get` would print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from contracts.codec import to_builtins
from contracts.gang import Member
from contracts.ids import NodeName
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DevicesAnnounced, ObjectObserved, SubmitGang
from publisher.slices.layout import lay_out
from publisher.slices.plan_slices import plan_slices
from publisher.steps import Create

NOW = "2026-01-02T03:04:05Z"


def objects_of(message: DevicesAnnounced | ObjectObserved) -> Iterator[Any]:
    """Make the objects that say the same as a message."""
    if isinstance(message, ObjectObserved):
        yield message.object
        return
    for pool in message.pools:
        layout = lay_out(pool, NodeName(message.node), {}, owned=False)
        for step in plan_slices(layout, (), now=NOW):
            assert isinstance(step, Create)
            value = to_kubernetes(step.object)
            yield {**value, "metadata": {**value["metadata"], "resourceVersion": "1"}}


def gang_object(message: SubmitGang) -> Any:
    """Make the Gang of a submission."""
    meta = structs.replace(message.gang.metadata, uid=message.uid)
    return to_kubernetes(structs.replace(message.gang, metadata=meta))


def pod_objects(message: SubmitGang) -> Iterator[Any]:
    """Make the pods of a submission, none of which needs another, and templates."""
    name = message.gang.metadata.name
    for member in message.gang.spec.members:
        for claim in member.claims:
            spec = {"spec": to_builtins(claim.spec)}
            template = f"{name}-{member.name}-{claim.name}"
            yield _object("ResourceClaimTemplate", template, spec, api=_DRA)
        for index in range(member.count):
            yield _object("Pod", f"{name}-{member.name}-{index}", _pod(name, member))


_DRA = "resource.k8s.io/v1"


def _pod(gang: str, member: Member) -> Any:
    requests = {key: amount.text for key, amount in member.node.resources.items()}
    templates = [(c.name, f"{gang}-{member.name}-{c.name}") for c in member.claims]
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    return {
        "containers": [container],
        "resourceClaims": [
            {"name": claim, "resourceClaimTemplateName": template}
            for claim, template in templates
        ],
    }


def _object(kind: str, name: str, spec: Any, *, api: str = "v1") -> Any:
    metadata = {"name": name, "namespace": "bench"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def write_list(path: Path, objects: Iterable[Any]) -> None:
    """Write a List, as kubectl prints it: `.json` or `.yaml`, one object at a time."""
    with path.open("w", encoding="utf-8") as file:
        if path.suffix == ".json":
            _write_json(file.write, objects)
            return
        file.write("apiVersion: v1\nkind: List\nitems:\n")
        for value in objects:
            file.write(yaml.dump([value], Dumper=yaml.CSafeDumper))


def _write_json(write: Any, objects: Iterable[Any]) -> None:
    write('{\n    "apiVersion": "v1",\n    "kind": "List",\n    "items": [\n')
    for number, value in enumerate(objects):
        write(",\n" if number else "")
        write(json.dumps(value, indent=4))
    write("\n    ]\n}\n")
