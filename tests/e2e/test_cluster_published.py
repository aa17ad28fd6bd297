"""What `moorings plan` says of a published object is what the cluster makes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest
from msgspec import Struct
from typer.testing import CliRunner

from moorings.cli.main import app
from moorings.client import Client
from moorings.plan.reading import Reader
from moorings.plan.work import prepare_work
from tests.builders.controllers import list_children
from tests.cases.published import SHAPES, Gangs, list_gangs
from tests.lab import workloads
from tests.lab.cluster import Stack, is_running
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually

TOGETHER = {
    name: shape
    for name, (shape, gangs) in SHAPES.items()
    if any(count > 1 for members in gangs.values() for _, count, _ in members)
}
"""Shapes whose pods are decided together."""
WORLD = ("DeviceClass", "ResourceSlice", "ResourceClaimTemplate")
OF_KUBERNETES = ("batch/v1", "apps/v1")
IN_CLUSTER = "ClusterTrainingRuntime"


class Outcome(Struct):
    """What became of an object, or is to become of it."""

    gangs: Gangs
    claims: int
    """With devices."""


@pytest.fixture
async def large(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Two nodes with devices for all shapes, and the kinds of the projects."""
    assert stack.nats.url
    kinds = {
        (each["apiVersion"], each["kind"]): None
        for shape in TOGETHER.values()
        for each in shape
        if each["apiVersion"] not in OF_KUBERNETES
    }
    crds = await workloads.serve(kube, kinds)
    devices = tuple(objects.devices(64))
    async with fleet.running(kube, namespace, devices=devices) as site:
        yield site
    await workloads.stop_serving(kube, crds)


async def test_a_plan_is_what_the_cluster_decides(large: Fleet, client: Client) -> None:
    """Of all shapes at once, each in a namespace of its own."""
    kube = large.kube
    async with AsyncExitStack() as spaces:
        entered = (spaces.enter_async_context(kube.namespace()) for _ in TOGETHER)
        names = await asyncio.gather(*entered)
        applied = {
            name: _in_namespace(shape, name)
            for name, shape in zip(names, TOGETHER.values(), strict=True)
        }
        one = objects.requests(large.device_class)
        templates = [objects.template(name, "one", one) for name in names]
        await asyncio.gather(*map(kube.create, templates))
        foretold = await _plan(kube, applied)
        await asyncio.gather(*(_apply(kube, shape) for shape in applied.values()))
        decided = await _decided(kube, client, foretold)
    by_shape = dict(zip(TOGETHER, names, strict=True))
    assert {shape: decided[name] for shape, name in by_shape.items()} == {
        shape: foretold[name] for shape, name in by_shape.items()
    }
    assert all(
        decided[name].gangs == SHAPES[shape][1] for shape, name in by_shape.items()
    )


def _in_namespace(shape: Sequence[Json], namespace: str) -> list[Json]:
    """Give the objects of a shape as their author applies them there."""
    text = json.dumps(shape)
    moved: list[Json] = json.loads(text.replace('"default"', f'"{namespace}"'))
    for each in moved:
        if each["kind"] == IN_CLUSTER:
            del each["metadata"]["namespace"]
    return moved


async def _plan(kube: Kube, applied: dict[str, list[Json]]) -> dict[str, Outcome]:
    """Ask what becomes of objects, of which none is there yet, by namespace."""
    world = [await kube.list("v1", "Node")]
    world += [await kube.list(objects.RESOURCE, kind) for kind in WORLD]
    items = [each for listed in (*world, *applied.values()) for each in listed]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    words = ("plan", "-f", "-", "-o", "json")
    answer = CliRunner().invoke(app, words, input=json.dumps(listed))
    assert answer.exit_code == 0, answer.output
    claims = json.loads(answer.stdout)["claims"]
    work = prepare_work(Reader(str).read_list(items))
    return {
        name: Outcome(
            list_gangs(
                message.gang
                for message in work.gangs
                if message.gang.metadata.namespace == name
            ),
            sum(
                claim["namespace"] == name and claim["verdict"] == "allocated"
                for claim in claims
            ),
        )
        for name in applied
    }


async def _apply(kube: Kube, shape: list[Json]) -> None:
    """Create the objects of an author, and all that controllers make of them."""
    waiting = list(shape)
    while waiting:
        stored = await kube.create(waiting.pop(0))
        waiting += list_children(stored, shape)


async def _decided(
    kube: Kube, client: Client, foretold: dict[str, Outcome]
) -> dict[str, Outcome]:
    """Wait until as many pods run with their devices as were foretold."""
    running: dict[str, int] = {}

    async def all_run() -> bool:
        pods = await kube.list("v1", "Pod")
        running.update(dict.fromkeys(foretold, 0))
        for pod in pods:
            space = pod["metadata"]["namespace"]
            if space in foretold and is_running(pod) and "resourceClaims" in pod["spec"]:
                running[space] += 1
        return running == {name: each.claims for name, each in foretold.items()}

    await eventually(all_run, lambda: f"pods of {foretold}: {running}", 60.0)
    records = await client.fetch_gangs()
    claims = [
        claim["metadata"]["namespace"]
        for claim in await kube.list(objects.RESOURCE, "ResourceClaim")
        if fleet.allocated(claim)
    ]
    return {
        name: Outcome(
            list_gangs(
                record.submission.gang
                for record in records
                if record.submission is not None and record.namespace == name
            ),
            claims.count(name),
        )
        for name in foretold
    }
