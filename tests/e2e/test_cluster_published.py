"""What `moorings plan` says of a published object is what the cluster makes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest
from msgspec import Struct
from typer.testing import CliRunner

from contracts.gang import Gang
from contracts.names import WORKLOAD
from moorings.bus_client import Client
from moorings.cli.main import app
from moorings.plan.reading import Reader
from moorings.plan.work import prepare_work
from tests.builders.controllers import list_children, makes_pods
from tests.cases.published import SHAPES, Gangs, list_gangs
from tests.lab import workloads
from tests.lab.cluster import Stack, is_running
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually

NAMED = [name for name in SHAPES if name != "Deployment"]
"""Shapes of whose gangs the names are known: a Deployment's pods have drawn ones."""
WORLD = ("DeviceClass", "ResourceSlice", "ResourceClaimTemplate")
OF_KUBERNETES = ("batch", "apps")
IN_CLUSTER = "ClusterTrainingRuntime"


class Outcome(Struct):
    """What became of an object, or is to become of it."""

    gangs: Gangs
    workloads: list[str]
    """By what each of them is a gang; empty: it is a pod alone."""
    claims: int
    """With devices."""

    @classmethod
    def of(cls, gangs: Sequence[Gang], claims: Sequence[str], name: str) -> Outcome:
        """Choose gangs and claims of a namespace; of claims theirs are given."""
        own = [each for each in gangs if each.metadata.namespace == name]
        workloads = sorted(each.metadata.annotations.get(WORKLOAD, "") for each in own)
        return cls(list_gangs(own), workloads, claims.count(name))


@pytest.fixture
async def roomy(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Two nodes with devices for all shapes, and the kinds of the projects."""
    assert stack.nats.url
    kinds = {
        (each["apiVersion"], each["kind"]): None
        for name in NAMED
        for each in SHAPES[name][0]
        if each["apiVersion"].partition("/")[0] not in OF_KUBERNETES
    }
    crds = await workloads.serve(kube, kinds)
    devices = tuple(objects.devices(64))
    async with fleet.running(kube, namespace, devices=devices) as site:
        yield site
    await workloads.stop_serving(kube, crds)


async def test_a_plan_is_what_the_cluster_decides(roomy: Fleet, client: Client) -> None:
    """Of all shapes at once; each waits for its last pod, and is decided once."""
    kube = roomy.kube
    async with AsyncExitStack() as spaces:
        entered = (spaces.enter_async_context(kube.namespace()) for _ in NAMED)
        names = await asyncio.gather(*entered)
        shapes = dict(zip(names, NAMED, strict=True))
        applied = {name: _in_namespace(SHAPES[shapes[name]][0], name) for name in names}
        one = objects.requests(roomy.device_class)
        templates = [objects.template(name, "one", one) for name in names]
        await asyncio.gather(*map(kube.create, templates))
        foretold = await _plan(kube, applied)
        made = await asyncio.gather(*(_apply(kube, applied[name]) for name in names))
        late = await asyncio.gather(
            *(
                _create_all_but_last(kube, makers, foretold[name].gangs)
                for name, makers in zip(names, made, strict=True)
            )
        )
        last = list(filter(None, late))
        await _told_missing(kube, {each["metadata"]["namespace"] for each in last})
        await asyncio.gather(*map(kube.create, last))
        decided = await _decided(kube, client, foretold)
    for name, shape in shapes.items():
        gangs = SHAPES[shape][1]
        pods = sum(count for members in gangs.values() for _, count, _ in members)
        assert (shape, decided[name]) == (shape, foretold[name])
        assert (shape, decided[name].gangs) == (shape, gangs)
        assert (shape, decided[name].claims) == (shape, pods)


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
    claims = [
        claim["namespace"]
        for claim in json.loads(answer.stdout)["claims"]
        if claim["verdict"] == "allocated"
    ]
    work = prepare_work(Reader(lambda _: None).read_list(items))
    gangs = [message.gang for message in work.gangs]
    return {name: Outcome.of(gangs, claims, name) for name in applied}


async def _apply(kube: Kube, shape: list[Json]) -> list[Json]:
    """Create the objects of an author, and what controllers make of them.

    Gives what makes pods, or is one, in the order in which it is to be created.
    """
    makers: list[Json] = []
    waiting = list(shape)
    while waiting:
        each = waiting.pop(0)
        if makes_pods(each):
            makers.append(each)
        else:
            waiting += list_children(await kube.create(each), shape)
    return makers


async def _create_all_but_last(kube: Kube, makers: list[Json], gangs: Gangs) -> Json:
    """Create pods, or what makes them; gives what is missing.

    Nothing (`{}`) is, where Kubernetes makes all pods, fewer are enough, or each is
    decided alone.
    """
    members = [member for each in gangs.values() for member in each]
    is_late = (
        len(makers) > 1
        and any(count > 1 for _, count, _ in members)
        and all(count == least for _, count, least in members)
    )
    for each in makers[: -1 if is_late else None]:
        await kube.create(each)
    return makers[-1] if is_late else {}


async def _told_missing(kube: Kube, names: set[str]) -> None:
    """Wait until an event in each of these namespaces says that pods are missing."""
    missing = set(names)

    async def told() -> bool:
        for event in await kube.list("events.k8s.io/v1", "Event"):
            if event["reason"] == "GangPodsMissing":
                missing.discard(event["metadata"]["namespace"])
        return not missing

    await eventually(told, lambda: f"told of pods in {missing}", 120.0)


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
            if (
                space in foretold
                and is_running(pod)
                and "resourceClaims" in pod["spec"]
            ):
                running[space] += 1
        return running == {name: each.claims for name, each in foretold.items()}

    await eventually(all_run, lambda: f"pods of {foretold}: {running}", 120.0)
    records = await client.fetch_gangs()
    gangs = [each.submission.gang for each in records if each.submission is not None]
    claims = [
        claim["metadata"]["namespace"]
        for claim in await kube.list(objects.RESOURCE, "ResourceClaim")
        if fleet.allocated(claim)
    ]
    return {name: Outcome.of(gangs, claims, name) for name in foretold}
