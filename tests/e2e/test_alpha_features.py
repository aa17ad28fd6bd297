"""What is behind gates that are off by default, on a control plane with them on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.bound import asks, create_gang, exactly, run_gang, until_bound
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane, running
from tests.lab.waits import until_told

GATES = (
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
)


@pytest.fixture(scope="module")
def control_plane(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """One for this module, instead of the one that all share."""
    options = Options(feature_gates=tuple(f"{gate}=true" for gate in GATES))
    folder = tmp_path_factory.mktemp("alpha")
    with running(control_plane_programs, folder, options) as started:
        yield started


async def publish(site: Fleet, *devices: Json) -> None:
    """Publish the devices of the first node."""
    await site.publish(objects.resource_slice(site.driver, site.a, devices))


async def test_lists_match_in_one_value(bare: Fleet) -> None:
    """KEP-5491: what all devices of a claim have in common is one root at least."""
    roots = {"left": ["x", "y"], "middle": ["y", "z"], "right": ["z", "w"]}
    devices = [
        {"name": name, "attributes": {"roots": {"strings": values}}}
        for name, values in roots.items()
    ]
    await publish(bare, *devices)
    constraints = [{"matchAttribute": f"{bare.driver}/roots"}]
    three = asks(exactly(bare.device_class, count=3), constraints=constraints)
    (waiting,) = await create_gang(bare, "three", three)
    await until_told(bare.kube, waiting, "GangConstraintUnsatisfiable")
    two = asks(exactly(bare.device_class, count=2), constraints=constraints)
    (pod,) = await run_gang(bare, "two", two)
    assert "middle" in pod.devices


async def test_what_is_derived_of_a_device_is_compared(bare: Fleet) -> None:
    """KEP-6080: devices of one rack, which no attribute says alone."""
    devices = [
        {"name": name, "attributes": {"path": {"string": path}}}
        for name, path in (("a", "r1/1"), ("b", "r2/1"), ("c", "r2/2"))
    ]
    await publish(bare, *devices)
    path = f'device.attributes["{bare.driver}"].path'
    derived = [{"name": "example.com/rack", "expression": f'{path}.split("/")[0]'}]
    request = exactly(bare.device_class, count=2, derivedAttributes=derived)
    constraints = [{"matchAttribute": "example.com/rack"}]
    (pod,) = await run_gang(bare, "rack", asks(request, constraints=constraints))
    assert sorted(pod.devices) == ["b", "c"]


async def test_parts_that_do_not_go_together_are_not_in_use_together(
    bare: Fleet, kube: Kube
) -> None:
    """KEP-5963: with counters to spare, only devices of a common group."""

    def part(name: str, *groups: str) -> Json:
        counters = {"slices": {"value": "1"}}
        draws = {"counterSet": "gpu", "counters": counters}
        return {
            "name": name,
            "attributes": {"mode": {"string": groups[0]}},
            "consumesCounters": [{**draws, "compatibilityGroups": list(groups)}],
        }

    counters = [{"name": "gpu", "counters": {"slices": {"value": "8"}}}]
    where = {"nodeName": bare.a}
    devices = [part("m0", "mig"), part("m1", "mig"), part("t0", "time")]
    specs = ({**where, "sharedCounters": counters}, {**where, "devices": devices})
    await bare.publish(*objects.pool(bare.driver, bare.a, *specs))

    def of_mode(mode: str) -> Json:
        text = f'device.attributes["{bare.driver}"].mode == "{mode}"'
        selectors = [{"cel": {"expression": text}}]
        return asks(exactly(bare.device_class, selectors=selectors))

    pods = await run_gang(bare, "mig", of_mode("mig"), 2)
    (waiting,) = await create_gang(bare, "time", of_mode("time"))
    note = await until_told(kube, waiting, "GangDevicesTaken")
    assert (
        "t0 is in compatibility group time, those in use in compatibility group mig"
        in note
    )
    for pod in pods:
        bare.kubelets.finish(pod.pod)
    (pod,) = await until_bound(bare, "time")
    assert pod.devices == ["t0"]


async def test_what_a_node_need_not_do_is_repeated_in_the_result(
    bare: Fleet, kube: Kube
) -> None:
    """And such devices are only for nodes that declare that they know of it."""
    skips = ["NodePrepareResources", "NodeUnprepareResources"]
    for node in (bare.a, bare.b):
        more = {"nodeName": node, "skipNodeOperations": skips}
        slices = objects.pool(
            bare.driver, node, {**more, "devices": objects.devices(1)}
        )
        await bare.publish(*slices)
    declared = {"status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}}
    await kube.patch(named("v1", "Node", bare.b), declared, "status")
    (pod,) = await run_gang(bare, "skips", asks(exactly(bare.device_class)))
    assert pod.node == bare.b
    assert pod.results[0]["skipNodeOperations"] == skips


async def test_fractions_of_a_unit_are_consumed(bare: Fleet) -> None:
    """In steps below one, where the whole range is of such."""
    policy = {
        "default": "500m",
        "validRange": {"min": "100m", "step": "100m", "max": "1"},
    }
    capacity = {"cores": {"value": "1", "requestPolicy": policy}}
    await publish(
        bare, {"name": "gpu", "allowMultipleAllocations": True, "capacity": capacity}
    )
    wish = {"requests": {"cores": "250m"}}
    pods = await run_gang(
        bare, "small", asks(exactly(bare.device_class, capacity=wish)), 3
    )
    assert [pod.results[0]["consumedCapacity"]["cores"] for pod in pods] == ["300m"] * 3
    (waiting,) = await create_gang(
        bare, "more", asks(exactly(bare.device_class, capacity=wish))
    )
    await until_told(bare.kube, waiting, "GangDevicesTaken")
