"""One step of a plan -> one write to the API server, valid only on what was observed.

Updates replace what plans decide about (spec, owners, labels) and nothing else, so
fields that we do not know stay. Decides nothing about failures.
"""

from __future__ import annotations

from typing import TypeVar, assert_never

from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.errors import ContractsError
from contracts.kubernetes.decode import decode_object, to_kubernetes
from publisher.metrics import WRITES
from publisher.steps import Create, Delete, Step, Update
from runtime.kube.api import Json, KubernetesApi
from runtime.kube.errors import ConflictError, InvalidError, UnavailableError
from runtime.kube.kinds import Kind

T = TypeVar("T", ResourceSlice, DeviceTaintRule)


async def carry_out(api: KubernetesApi, kind: Kind, step: Step[T]) -> T | None:
    """Carry out a step and return the object as it is then; None: it is gone.

    Raises:
        ConflictError: the object is not any more what was observed.
        ApiError: as its tree says.
    """
    result = "failed"
    try:
        kept = await _carry_out(api, kind, step)
        result = "written"
    except ConflictError:
        result = "conflict"
        raise
    except InvalidError:
        result = "refused"
        raise
    finally:
        WRITES.labels(kind.name, result).inc()
    return kept


async def _carry_out(api: KubernetesApi, kind: Kind, step: Step[T]) -> T | None:
    planned = step.object
    metadata = planned.metadata
    body = to_kubernetes(planned, kind.api_version)
    match step:
        case Create():
            answer = await api.create(kind, body)
        case Update():
            changes: list[Json] = [
                {"op": "add", "path": "/metadata/labels", "value": metadata.labels},
                {
                    "op": "add",
                    "path": "/metadata/ownerReferences",
                    "value": to_builtins(metadata.owner_references),
                },
                {"op": "replace", "path": "/spec", "value": body["spec"]},
            ]
            answer = await api.patch(
                kind,
                metadata.name,
                changes,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
            )
        case Delete():
            await api.delete(
                kind,
                metadata.name,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
            )
            return None
        case _:
            assert_never(step)
    if answer.get("spec") != body["spec"]:
        # Something was defaulted, dropped or changed on the way.
        return decode_as(type(planned), answer)
    kept = {"uid": answer["metadata"]["uid"]}
    kept["resource_version"] = answer["metadata"]["resourceVersion"]
    return replace(planned, metadata=replace(metadata, **kept))


def decode_as(kind: type[T], answer: Json) -> T:
    """Read an object of the API server.

    Raises:
        UnavailableError: it is not what was asked for.
    """
    what = f"read {kind.__name__}"
    try:
        value = decode_object(answer).value
    except ContractsError as error:
        raise UnavailableError(what, str(error)) from error
    if not isinstance(value, kind):
        raise UnavailableError(what, f"got {type(value).__name__}")
    return value
