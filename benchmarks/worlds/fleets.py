"""Fleets and gangs for benchmarks: the openb fleet in part or whole, gangs by seed."""

from __future__ import annotations

import random
from pathlib import Path

from contracts.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from contracts.codec import to_builtins
from contracts.gang import Gang, GangSpec, Member, MemberClaim
from contracts.ids import ClusterName, DeviceClassName, GangUID
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DevicesAnnounced, ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta
from nodeagent.inventory import announce
from nodeagent.sources.expand import expand
from nodeagent.sources.fleet import read_fleet

CLUSTER = ClusterName("local")
DRIVER = "gpu.moorings.dev"
CLASS = DeviceClassName("gpu.moorings.dev")
FLEET = Path(__file__).parent.parent.parent / "moorings" / "fleets" / "openb.yaml"
UNIFORM = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: uniform
nodes:
- shape: g2
  count: {g2}
  name: "g2-{{index:05}}"
  resources: {{cpu: "96", memory: 384Gi}}
  devices: [{devices}, attributes: {{productName: G2}}}}]
- shape: t4
  count: {t4}
  name: "t4-{{index:05}}"
  resources: {{cpu: "96", memory: 384Gi}}
  devices: [{devices}, attributes: {{productName: T4}}}}]
"""
DEVICES = (
    f'{{driver: {DRIVER}, count: 8, name: "gpu-{{index}}", numaNodes: 2, '
    "pcieRoots: 4, uuidPrefix: GPU"
)


def inventories(gpu_nodes: int | None = None) -> list[DevicesAnnounced]:
    """Announce the openb fleet: all of it, or so many of its GPU nodes by name hash."""
    nodes = expand(read_fleet(FLEET.read_text(), FLEET.name), FLEET.name)
    announced = [
        announce(CLUSTER, nodes.make_devices(n), None)[0] for n in nodes.by_name
    ]
    if gpu_nodes is None:
        return announced
    with_gpus = [message for message in announced if message.pools]
    return random.Random(0).sample(with_gpus, gpu_nodes)


def uniform(nodes: int) -> list[DevicesAnnounced]:
    """Announce nodes of 8 GPUs each, one in four of another model than the rest."""
    text = UNIFORM.format(g2=nodes - nodes // 4, t4=nodes // 4, devices=DEVICES)
    made = expand(read_fleet(text, "uniform"), "uniform")
    return [announce(CLUSTER, made.make_devices(n), None)[0] for n in made.by_name]


def observed_class() -> ObjectObserved:
    """Observe the DeviceClass of the fleet's GPUs."""
    selector = CELDeviceSelector(expression=f'device.driver == "{DRIVER}"')
    device_class = DeviceClass(
        metadata=ObjectMeta(name=CLASS),
        spec=DeviceClassSpec(selectors=(DeviceSelector(cel=selector),)),
    )
    return ObjectObserved(
        cluster=CLUSTER,
        kind="DeviceClass",
        key=CLASS,
        object=to_builtins(to_kubernetes(device_class)),
    )


def submission(number: int, draw: random.Random, *, most_pods: int = 8) -> SubmitGang:
    """Draw a gang: 1-8 pods of 1, 2, 4 or 8 GPUs, half of them of one model."""
    model = draw.choice([None, None, "G2", "T4"])
    text = f'device.attributes["{DRIVER}"].productName == "{model}"'
    selectors = (DeviceSelector(cel=CELDeviceSelector(expression=text)),)
    request = ExactDeviceRequest(
        device_class_name=CLASS,
        count=draw.choice([1, 1, 1, 2] if model == "T4" else [1, 1, 2, 4, 8]),
        selectors=selectors if model else (),
    )
    claim = ResourceClaimSpec(
        devices=DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=request),))
    )
    member = Member(
        name="worker",
        count=draw.randint(1, most_pods),
        claims=(MemberClaim(name="gpus", spec=claim),),
    )
    return SubmitGang(
        cluster=CLUSTER,
        uid=GangUID(f"00000000-0000-4000-8000-{number:012}"),
        gang=Gang(
            metadata=ObjectMeta(name=f"gang-{number}", namespace="bench"),
            spec=GangSpec(members=(member,)),
        ),
    )
