"""A step becomes one write, and its answer is what is known from then on."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.device import ResourceSlice
from contracts.kubernetes.decode import to_kubernetes
from publisher.kube.carry_out import carry_out, decode_as
from publisher.steps import Create, Delete, Step, Update
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import UnavailableError
from runtime.kube.kinds import RESOURCE_SLICE
from tests import builders

MADE = builders.resource_slice(name="s")
SEEN = replace(MADE, metadata=replace(MADE.metadata, uid="u", resource_version="7"))


def raw_of(value: ResourceSlice) -> dict[str, Any]:
    """Make an object as an API server has it."""
    return cast("dict[str, Any]", to_builtins(to_kubernetes(value)))


class Api:
    """Answers each write with one object, and keeps what it was asked."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = deepcopy(answer)
        self.answer["metadata"] |= {"uid": "u-new", "resourceVersion": "8"}
        self.body: Any = None
        self.only: dict[str, str] = {}

    async def create(self, _kind: object, body: Any) -> dict[str, Any]:
        """Answer."""
        self.body = body
        return self.answer

    async def patch(
        self, _kind: object, _key: str, body: Any, **only: str
    ) -> dict[str, Any]:
        """Answer, and keep the preconditions."""
        self.body, self.only = body, only
        return self.answer

    async def delete(self, _kind: object, _key: str, **only: str) -> None:
        """Keep the preconditions."""
        self.only = only


async def done(api: Api, step: Step[ResourceSlice]) -> ResourceSlice | None:
    """Carry out a step."""
    return await carry_out(cast("KubernetesApi", api), RESOURCE_SLICE, step)


async def test_what_was_taken_as_it_was_is_not_read_again() -> None:
    """Only uid and version are new."""
    made = await done(Api(raw_of(MADE)), Create(MADE))
    assert made is not None
    assert (made.metadata.uid, made.metadata.version_number) == ("u-new", 8)
    assert made.spec is MADE.spec


async def test_what_the_server_made_of_it_is_what_is_there() -> None:
    """A field of a feature that is off is dropped on the way."""
    kept = replace(MADE, spec=builders.resource_slice(generation=2, name="s").spec)
    made = await done(Api(raw_of(kept)), Create(MADE))
    assert made is not None
    assert made.spec == kept.spec


async def test_an_update_replaces_what_plans_decide_and_nothing_else() -> None:
    """And only in the version that was observed."""
    api = Api(raw_of(MADE))
    await done(api, Update(SEEN))
    paths = [change["path"] for change in api.body]
    assert paths == ["/metadata/labels", "/metadata/ownerReferences", "/spec"]
    assert api.only == {"uid": "u", "resource_version": "7"}


async def test_only_what_was_observed_is_deleted() -> None:
    """Another of that name stays."""
    api = Api(raw_of(MADE))
    assert await done(api, Delete(SEEN)) is None
    assert api.only == {"uid": "u", "resource_version": "7"}


def test_an_answer_of_another_kind_is_none() -> None:
    """So is one that cannot be read: whether it was done is not known."""
    claim = to_builtins(to_kubernetes(builders.claim()))
    with pytest.raises(UnavailableError, match="got ResourceClaim"):
        decode_as(ResourceSlice, claim)
    with pytest.raises(UnavailableError, match="read ResourceSlice"):
        decode_as(ResourceSlice, {"kind": "Status"})
