"""Classic DRA on the real control planes of 1.30 (v1alpha2) and 1.31 (v1alpha3).

The first example is that of Kubernetes' own documentation of these releases.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import replace

from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from contracts.names import TOPOLOGY
from publisher.classic.objects import ClassicClaim, write_allocation
from runtime.bus.bus import Bus
from runtime.wire import BusSettings
from tests.builders import allocation, devices, pool, result
from tests.lab.classic import (
    CONTROLLER,
    Site,
    api_version,
    controller,
    devices_of,
    is_allocated,
    is_bound,
)
from tests.lab.controlplane import objects, programs, server
from tests.lab.controlplane.client import Json, named
from tests.lab.controlplane.kubectl import Kubectl, build
from tests.lab.controlplane.options import API_SERVER, ETCD, of_release
from tests.lab.controlplane.server import ControlPlane
from tests.lab.manifests import OVERLAYS
from tests.lab.services import CLUSTER, Process, announce
from tests.lab.soak import SOAK

OLDER = Path(__file__).parents[1] / "data" / "older"
EXAMPLES = {"1.30": "v1alpha2", "1.31": "v1alpha3"}


class Older(Struct):
    """A control plane, and our processes beside it by name."""

    control_plane: ControlPlane
    nats_url: str
    processes: Mapping[str, Process]


@pytest.fixture(scope="module", params=["1.31", "1.30"])
def release(request: pytest.FixtureRequest) -> str:
    """A release with classic DRA."""
    return str(request.param)


@pytest.fixture(scope="module")
def older(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Older]:
    """Its control plane with our controller, where its programs were built."""
    binaries, folder = _binaries(release), tmp_path_factory.mktemp("older")
    with (
        server.running(binaries, folder, of_release(release)) as running,
        controller(running, folder) as (nats_url, processes),
    ):
        yield Older(control_plane=running, nats_url=nats_url, processes=processes)


def _binaries(release: str) -> Path:
    """Give the programs of a release, where they were built or have the time."""
    if not SOAK and not programs.already_built(release):
        pytest.skip(programs.NOT_BUILT.format(release))
    binaries = programs.built(release)
    if binaries is None:
        pytest.skip(programs.NO_CONTROL_PLANE)
    return binaries


@pytest.fixture
async def site(older: Older, release: str) -> AsyncIterator[Site]:
    """A namespace, and a class for devices of its nodes."""
    async with older.control_plane.client() as kube, kube.namespace() as namespace:
        site = Site(kube, release, namespace)
        await site.add_class()
        yield site


async def test_the_documents_example_is_bound(older: Older, release: str) -> None:
    """Two claims of one pod get the two black cats, and the pod its node."""
    async with older.control_plane.client() as kube:
        await kube.create(named("v1", "Namespace", "cats"))
        await kube.until(
            named("v1", "ServiceAccount", "default", "cats"), lambda _: True
        )
        await kube.create(objects.node("node-1"))
        for document in _example(release):
            await kube.create(document)
        pod = named("v1", "Pod", "pod-with-cats", "cats")
        bound = await kube.until(pod, is_bound)
        assert bound["spec"]["nodeName"] == "node-1"
        claims = await kube.list(api_version(release), "ResourceClaim", "cats")
        assert devices_of(claims) == ["node-1/felix", "node-1/tom"]
        for claim in claims:
            assert (
                f"{CONTROLLER}/deletion-protection" in claim["metadata"]["finalizers"]
            )
            (user,) = claim["status"]["reservedFor"]
            assert user["uid"] == bound["metadata"]["uid"]


def _example(release: str) -> list[Json]:
    """Give the example as its authors mean it: with a controller, on a cats' node."""
    text = (OLDER / f"{EXAMPLES[release]}.yaml").read_text()
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        if document["kind"] == "ResourceClaimTemplate" and release == "1.31":
            document["spec"]["spec"]["controller"] = CONTROLLER
    # The vendor's own object needs its CRD; what it was converted to is there, too.
    return [each for each in documents if "cats" not in each["apiVersion"]]


async def test_a_finished_pod_gives_its_devices_back(site: Site) -> None:
    """Its claim goes, by the finalizer, and the next pod gets the only device."""
    await site.add_node("a", 1)
    await site.add_template("one", 1)
    await site.add_pod("first", templates={"d": "one"})
    await site.kube.until(site.pod("first"), is_bound)
    (claim,) = await site.claims()
    await site.add_pod("second", templates={"d": "one"})
    await _finish(site, "first")
    await site.kube.until_gone(claim)
    await site.kube.until(site.pod("second"), is_bound)


async def _finish(site: Site, name: str) -> None:
    status = {"status": {"phase": "Succeeded"}}
    await site.kube.patch(site.pod(name), status, "status")


async def test_a_named_claim_is_shared_and_deallocated(site: Site) -> None:
    """Two pods use it at a time; it is free, and there, when both have ended."""
    await site.add_node("a", 1)
    await site.create("ResourceClaim", "ours", spec=await site.add_parameters(1))
    for name in ("one", "two"):
        await site.add_pod(name, claims={"d": "ours"})
    for name in ("one", "two"):
        await site.kube.until(site.pod(name), is_bound)
    claim = await site.kube.get(site.claim("ours"))
    assert len(claim["status"]["reservedFor"]) == 2
    for name in ("one", "two"):
        await _finish(site, name)
    freed = await site.kube.until(
        site.claim("ours"), lambda claim: not is_allocated(claim)
    )
    assert not freed.get("status", {}).get("deallocationRequested")
    await site.kube.delete(freed)
    await site.kube.until_gone(freed)


async def test_a_claim_that_is_held_elsewhere_for_nobody_is_deallocated(
    site: Site,
) -> None:
    """kube-scheduler asks for that when a pod cannot be where the claim is."""
    here, there = await site.add_node("a", 1), await site.add_node("b", 1)
    spec = await site.add_parameters(1)
    claim = await site.create("ResourceClaim", "ours", spec=spec)
    finalizers = {"finalizers": [f"{CONTROLLER}/deletion-protection"]}
    await site.kube.patch(claim, {"metadata": finalizers})
    known = ClassicClaim(key="", uid="", resource_version="", controller=CONTROLLER)
    request = spec["devices"]["requests"][0]["name"] if "devices" in spec else "req-0"
    device = result("dev-0", request=request, driver=CONTROLLER, pool=here)
    version = EXAMPLES[site.release]
    body = write_allocation(version, known, allocation(device, node=here), None)
    await site.kube.patch(claim, body, "status")
    await site.add_pod("pod", claims={"d": "ours"}, only=there)
    await site.kube.until(site.pod("pod"), is_bound)
    moved = await site.kube.get(claim)
    assert devices_of([moved]) == [f"{there}/dev-0"]


async def test_a_gang_is_decided_as_a_whole(site: Site) -> None:
    """Three pods of two, two and four devices: only one way of placing them works."""
    small, large = await site.add_node("a", 4), await site.add_node("b", 5)
    await site.add_template("pair", 2)
    await site.add_template("quad", 4)
    for name, template in (("one", "pair"), ("two", "pair"), ("big", "quad")):
        await site.add_pod(name, templates={"d": template}, gang="g", size=3)
    pods = {}
    for name in ("one", "two", "big"):
        pod = await site.kube.until(site.pod(name), is_bound)
        pods[name] = pod["spec"]["nodeName"]
    assert pods["one"] == pods["two"] != pods["big"]
    assert set(pods.values()) == {small, large}
    assert len(set(devices_of(await site.claims()))) == 8


async def test_rules_of_a_gang_hold_over_its_pods(site: Site) -> None:
    """Both pods go to the one rack that has devices for two."""
    for name, rack in (("a", "r1"), ("b", "r2"), ("c", "r2")):
        await site.add_node(name, 1, labels={"rack": rack})
    await site.add_template("one", 1)
    rule = json.dumps([{"key": "rack"}])
    for name in ("p0", "p1"):
        await site.add_pod(
            name,
            templates={"d": "one"},
            gang="g",
            size=2,
            annotations={TOPOLOGY: rule},
        )
    pods = [await site.kube.until(site.pod(name), is_bound) for name in ("p0", "p1")]
    nodes = {pod["spec"]["nodeName"].removeprefix(site.namespace) for pod in pods}
    assert nodes == {"-b", "-c"}


async def test_an_incomplete_gang_waits(site: Site) -> None:
    """Nothing is allocated for two of three pods; the third lets all go on."""
    await site.add_node("a", 3)
    await site.add_template("one", 1)
    for name in ("p0", "p1"):
        await site.add_pod(name, templates={"d": "one"}, gang="g", size=3)
    waiting = await _event(site, "p0", "PodsMissing")
    assert "2 of 3 pods" in waiting["note"]
    assert devices_of(await site.claims()) == []
    await site.add_pod("p2", templates={"d": "one"}, gang="g", size=3)
    for name in ("p0", "p1", "p2"):
        await site.kube.until(site.pod(name), is_bound)


async def _event(site: Site, pod: str, reason: str) -> Json:
    """Wait for the event of a reason about a pod."""
    for state in range(600):
        events = await site.kube.list("events.k8s.io/v1", "Event", site.namespace)
        for event in events:
            if event.get("reason") == reason and event["regarding"]["name"] == pod:
                return event
        await asyncio.sleep(0.1)
        assert state < 599, [(e.get("reason"), e.get("note")) for e in events]
    raise AssertionError


async def test_a_pod_that_was_bound_by_hand_gets_devices_of_its_node(
    site: Site,
) -> None:
    """The controller manager asks in the scheduler's place."""
    await site.add_node("a", 2)
    node = await site.add_node("b", 2)
    await site.add_template("pair", 2)
    await site.add_pod("early", templates={"d": "pair"}, nodeName=node)
    pod = site.pod("early")
    await site.kube.until(
        pod, lambda pod: bool(pod.get("status", {}).get("resourceClaimStatuses"))
    )
    (claim,) = await site.claims()
    allocated = await site.kube.until(claim, is_allocated)
    assert devices_of([allocated]) == [f"{node}/dev-0", f"{node}/dev-1"]


async def test_an_immediate_claim_is_allocated_without_a_pod(site: Site) -> None:
    """It is kept until it is deleted; then its devices are free."""
    await site.add_node("a", 1)
    spec = await site.add_parameters(1)
    labels = {}
    if site.is_v1alpha2:
        spec["allocationMode"] = "Immediate"
    else:
        labels = {"moorings.dev/allocate": "Immediate"}
    await site.create("ResourceClaim", "now", spec=spec, labels=labels)
    claim = await site.kube.until(site.claim("now"), is_allocated)
    assert not claim["status"].get("reservedFor")
    await site.add_template("one", 1)
    await site.add_pod("later", templates={"d": "one"})
    await site.kube.delete(claim)
    await site.kube.until_gone(claim)
    await site.kube.until(site.pod("later"), is_bound)


async def test_what_does_not_fit_says_why(site: Site) -> None:
    """The pod's author reads the rule, and every node is called unsuitable."""
    node = await site.add_node("a", 1)
    await site.add_template("pair", 2)
    await site.add_pod("much", templates={"d": "pair"})
    # In v1alpha2 they are two requests, each of which has a device.
    await _event(site, "much", "JointCapacity" if site.is_v1alpha2 else "NoCandidate")
    version = api_version(site.release)
    context = named(version, "PodSchedulingContext", "much", site.namespace)
    told = await site.kube.until(context, lambda c: bool(c.get("status")))
    (entry,) = told["status"]["resourceClaims"]
    assert entry == {"name": "d", "unsuitableNodes": [node]}
    # A node that comes later has what it needs.
    other = await site.add_node("b", 2)
    pod = await site.kube.until(site.pod("much"), is_bound)
    assert pod["spec"]["nodeName"] == other


async def test_a_controller_that_is_killed_goes_on_where_it_was(
    older: Older, site: Site
) -> None:
    """A gang of which one pod is missing is decided by the next one, from the bus."""
    await site.add_node("a", 4)
    await site.add_template("one", 1)
    await site.add_pod("p0", templates={"d": "one"}, gang="g", size=2)
    await _event(site, "p0", "PodsMissing")
    publisher = older.processes["publisher"]
    publisher.kill()
    await site.add_pod("p1", templates={"d": "one"}, gang="g", size=2)
    publisher.start()
    for name in ("p0", "p1"):
        await site.kube.until(site.pod(name), is_bound)
    before = devices_of(await site.claims())
    assert len(set(before)) == 2
    publisher.kill()
    publisher.start()
    # What is held is known from the claims alone.
    await site.add_template("two", 2)
    await site.add_pod("p2", templates={"d": "two"})
    await site.kube.until(site.pod("p2"), is_bound)
    assert len(set(devices_of(await site.claims()))) == 4


async def test_devices_of_node_agents_are_allocated(older: Older, site: Site) -> None:
    """No driver publishes ResourceSlices for them."""
    node = await site.add_node("a", 0)
    offered = devices(2, attributes={"site": site.namespace})
    content = pool(*offered, name=node, driver=CONTROLLER)
    message = DevicesAnnounced(cluster=CLUSTER, node=NodeName(node), pools=(content,))
    async with Bus.open(BusSettings(name="test", servers=(older.nats_url,))) as bus:
        await bus.wait_connected(10)
        await announce(bus, message)
        await site.add_template("pair", 2)
        await site.add_pod("pod", templates={"d": "pair"})
        await site.kube.until(site.pod("pod"), is_bound)
    assert len(devices_of(await site.claims())) == 2


@pytest.mark.parametrize("release", ["1.31"], indirect=True)
async def test_a_publisher_without_the_setting_says_which_it_is(
    older: Older, tmp_path: Path
) -> None:
    """The ordinary one finds no version that it knows, and names what is served."""
    process = Process(
        "publisher",
        tmp_path / "log",
        PUBLISHER_SERVERS=older.nats_url,
        PUBLISHER_KUBECONFIG=str(older.control_plane.kubeconfig()),
    )
    process.start()
    assert process.ended() != 0
    assert "in v1alpha3: set PUBLISHER_CLASSIC_CONTROLLERS" in process.log()


async def test_a_newer_cluster_has_no_use_for_the_setting(
    control_plane: ControlPlane, nats_url: str, tmp_path: Path
) -> None:
    """It is refused by name at the start."""
    process = Process(
        "publisher",
        tmp_path / "log",
        PUBLISHER_SERVERS=nats_url,
        PUBLISHER_KUBECONFIG=str(control_plane.kubeconfig()),
        PUBLISHER_CLASSIC_CONTROLLERS=CONTROLLER,
    )
    process.start()
    assert process.ended() != 0
    assert "PUBLISHER_CLASSIC_CONTROLLERS" in process.log()
    assert "serves resource.k8s.io/v1, where nobody asks" in process.log()


async def test_a_gate_that_is_off_is_named(tmp_path: Path, nats_url: str) -> None:
    """The API server clears `spec.controller`; so the controller does not begin."""
    options = of_release("1.31")
    gates = tuple(g for g in options.feature_gates if "ControlPlane" not in g)
    options = replace(options, feature_gates=gates, programs=(ETCD, API_SERVER))
    with server.running(_binaries("1.31"), tmp_path, options) as running:
        process = Process(
            "publisher",
            tmp_path / "log",
            PUBLISHER_SERVERS=nats_url,
            PUBLISHER_KUBECONFIG=str(running.kubeconfig()),
            PUBLISHER_CLASSIC_CONTROLLERS=CONTROLLER,
        )
        process.start()
        assert process.ended() != 0
        assert "DRAControlPlaneController is off" in process.log()
        async with running.client() as kube:
            await kube.create(named("v1", "Namespace", "cats"))
            site = Site(kube, "1.31", "cats")
            stored = await site.create(
                "ResourceClaim", "ours", spec=await site.add_parameters(1)
            )
            assert "controller" not in stored["spec"]


@pytest.mark.parametrize("release", ["1.31", "1.30"])
async def test_the_overlay_is_taken(release: str, tmp_path: Path) -> None:
    """An API server of the release has all kinds that it names; the role is there."""
    options = replace(of_release(release), programs=(ETCD, API_SERVER))
    with server.running(_binaries(release), tmp_path, options) as running:
        admin = Kubectl(running.binaries / "kubectl", running.kubeconfig())
        built = build(running.binaries, OVERLAYS / "classic")
        first = [thing for thing in built if thing["kind"] == "Namespace"]
        admin("apply", "-f", "-", given=first)
        admin("apply", "-f", "-", given=built)
        assert admin("get", "clusterrole", "moorings-publisher-classic")
