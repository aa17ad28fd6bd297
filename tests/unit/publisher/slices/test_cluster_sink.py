"""The slices of a cluster are what the API server answered, pool by pool."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.device import ResourcePool, ResourceSlice
from contracts.ids import NodeName, PoolID
from contracts.kubernetes.decode import to_kubernetes
from contracts.meta import ObjectMeta
from contracts.workload import Node
from publisher.slices.cluster_sink import ClusterSliceSink
from publisher.slices.known_slices import KnownSlices
from publisher.slices.layout import lay_out, owner_reference_of, pool_of
from publisher.slices.plan_slices import plan_slices
from publisher.steps import Create, Delete, Step
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, InvalidError, NotFoundError
from runtime.kube.kinds import RESOURCE_SLICE
from tests import builders

NOW = "2026-11-20T12:00:00Z"
NODE = Node(metadata=ObjectMeta(name=builders.NODE, uid="node-uid"))
Raw = dict[str, Any]


def step_of(pool: ResourcePool) -> Create[ResourceSlice]:
    """Plan the one slice of a pool."""
    layout = lay_out(pool, NodeName(builders.NODE), {}, owned=False)
    (step,) = plan_slices(layout, (), now=NOW, owner=owner_reference_of(NODE))
    assert isinstance(step, Create)
    return step


ONE, TWO = step_of(builders.pool()), step_of(builders.pool(name="other"))
POOL, OTHER = pool_of(ONE.object.spec), pool_of(TWO.object.spec)


class Api:
    """Takes what it is sent, but for the slices of which it says why not."""

    def __init__(self, **errors: ApiError) -> None:
        self._errors = errors
        self.there: dict[str, Raw] = {}

    async def create(self, _kind: object, body: Raw) -> Raw:
        """Make a slice."""
        pool = body["spec"]["pool"]["name"].replace("-", "_")
        if pool in self._errors:
            raise self._errors[pool]
        body["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        raw = self.there[body["metadata"]["name"]] = to_builtins(body)
        return cast("Raw", raw)

    async def delete(self, _kind: object, key: str, **_: str) -> None:
        """Remove a slice."""
        del self.there[key]

    async def get(self, _kind: object, key: str) -> Raw:
        """Read a slice."""
        if key not in self.there:
            raise NotFoundError("get", "no")
        return self.there[key]


def make_sink(api: Api) -> ClusterSliceSink:
    """Make a sink that knows nothing yet."""
    return ClusterSliceSink(cast("KubernetesApi", api), RESOURCE_SLICE, KnownSlices())


async def test_answers_are_known_before_the_watch_shows_them() -> None:
    """What was made is there, and what was deleted is not."""
    sink = make_sink(Api())
    assert await sink.carry_out({POOL: [ONE], OTHER: [TWO]}) == {}
    assert set(sink.pools()) == {POOL, OTHER}
    (made,) = sink.slices(POOL)
    assert (made.spec, made.metadata.uid) == (ONE.object.spec, "u")
    assert await sink.carry_out({POOL: [Delete(made)]}) == {}
    assert list(sink.pools()) == [OTHER]


async def test_a_pool_that_fails_stops_no_other() -> None:
    """But its own further steps are not done: they come in their order."""
    error = InvalidError("create", "no")
    sink = make_sink(Api(node_1=error))
    plans: dict[PoolID, list[Step[ResourceSlice]]] = {POOL: [ONE, TWO], OTHER: []}
    assert await sink.carry_out(plans) == {POOL: error}
    assert list(sink.pools()) == []
    assert await sink.carry_out({POOL: [ONE], OTHER: [TWO]}) == {POOL: error}
    assert list(sink.pools()) == [OTHER]


@pytest.mark.parametrize("is_there", [True, False])
async def test_after_a_conflict_the_slice_is_read_again(*, is_there: bool) -> None:
    """Whoever plans next plans on what is there, be it nothing."""
    api = Api(node_1=ConflictError("create", "no"))
    sink = make_sink(api)
    metadata = replace(ONE.object.metadata, uid="u-other", resource_version="5")
    other = replace(ONE.object, metadata=metadata)
    if is_there:
        api.there[metadata.name] = to_builtins(to_kubernetes(other))
    await sink.carry_out({POOL: [ONE]})
    uids = [ours.metadata.uid for ours in sink.slices(POOL)]
    assert uids == (["u-other"] if is_there else [])
