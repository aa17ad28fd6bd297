"""The file that a container runtime reads, and what no source may put into it."""

from __future__ import annotations

import json

import pytest

from contracts.ids import DriverName
from nodeagent.cdi import (
    MAX_EDITS,
    ContainerEdits,
    DeviceNode,
    Hook,
    Mount,
    NetDevice,
    find_violations,
    qualify,
    write_spec,
)

DRIVER = DriverName("gpu.example.com")
ENV = ContainerEdits(env=("DEVICE=gpu-0",))


def test_a_file_has_the_field_names_of_the_specification() -> None:
    """As SPEC.md of the Container Device Interface writes them."""
    edits = ContainerEdits(
        env=("A=b",),
        device_nodes=(
            DeviceNode(path="/dev/x", host_path="/dev/y", type="c", file_mode=0o660),
        ),
        net_devices=(NetDevice(host_interface_name="eth7", name="net1"),),
        mounts=(Mount(host_path="/a", container_path="/b", options=("ro",)),),
        hooks=(Hook(hook_name="createContainer", path="/bin/h", args=("h", "1")),),
        additional_gids=(44,),
    )
    assert json.loads(write_spec(DRIVER, {"u-0": edits})) == {
        "cdiVersion": "1.1.0",
        "kind": "k8s.gpu.example.com/claim",
        "devices": [
            {
                "name": "u-0",
                "containerEdits": {
                    "env": ["A=b"],
                    "deviceNodes": [
                        {
                            "path": "/dev/x",
                            "hostPath": "/dev/y",
                            "type": "c",
                            "fileMode": 0o660,
                        }
                    ],
                    "netDevices": [{"hostInterfaceName": "eth7", "name": "net1"}],
                    "mounts": [
                        {"hostPath": "/a", "containerPath": "/b", "options": ["ro"]}
                    ],
                    "hooks": [
                        {
                            "hookName": "createContainer",
                            "path": "/bin/h",
                            "args": ["h", "1"],
                        }
                    ],
                    "additionalGids": [44],
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("edits", "version"),
    [
        (ENV, "0.6.0"),
        (ContainerEdits(additional_gids=(1,)), "0.7.0"),
        (
            ContainerEdits(net_devices=(NetDevice(host_interface_name="a", name="b"),)),
            "1.1.0",
        ),
    ],
)
def test_a_file_states_the_lowest_version_that_has_what_it_uses(
    edits: ContainerEdits, version: str
) -> None:
    """So that older runtimes read what they can do."""
    written = json.loads(write_spec(DRIVER, {"b": ENV, "a": edits}))
    assert written["cdiVersion"] == version
    assert [device["name"] for device in written["devices"]] == ["a", "b"]


def test_a_device_is_named_with_its_kind() -> None:
    """As kubelet passes it to the runtime."""
    assert qualify(DRIVER, "u-0") == "k8s.gpu.example.com/claim=u-0"


def node(**fields: object) -> ContainerEdits:
    """A device node with something wrong."""
    return ContainerEdits(device_nodes=(DeviceNode(**{"path": "/d", **fields}),))  # type: ignore[arg-type]


def mount(host: str, container: str = "/b") -> ContainerEdits:
    """A mount of such paths."""
    return ContainerEdits(mounts=(Mount(host_path=host, container_path=container),))


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        (ContainerEdits(env=("A",)), "env[0]: must be NAME=value"),
        (ContainerEdits(env=("A=b", "=b")), "env[1]"),
        (ContainerEdits(env=("A=\0",)), "env[0]"),
        (node(path="dev/x"), "deviceNodes[0].path: 'dev/x' is not an absolute path"),
        (node(host_path="/dev/../etc"), "deviceNodes[0].hostPath"),
        (node(type="d"), "deviceNodes[0].type"),
        (node(permissions="rx"), "deviceNodes[0].permissions"),
        (node(major=-1), "deviceNodes[0]: numbers"),
        (node(file_mode=0o4777), "deviceNodes[0].fileMode"),
        (mount("/a/../../etc/shadow"), "mounts[0].hostPath"),
        (mount("/a", "//b"), "mounts[0].containerPath"),
        (mount("/a\nb"), "mounts[0].hostPath"),
        (ContainerEdits(hooks=(Hook(hook_name="x", path="/h"),)), "hooks[0].hookName"),
        (
            ContainerEdits(
                net_devices=(NetDevice(host_interface_name="..", name="b"),)
            ),
            "netDevices[0]",
        ),
        (ContainerEdits(additional_gids=(0,)), "additionalGids"),
        (ContainerEdits(env=("A=b",) * (MAX_EDITS + 1)), "env: must have at most"),
    ],
)
def test_what_no_runtime_may_be_told_is_named(edits: ContainerEdits, said: str) -> None:
    """By field and rule."""
    assert next(find_violations(edits)).startswith(said)


def test_what_is_in_order_has_no_violation() -> None:
    """Of each list one entry."""
    edits = ContainerEdits(
        env=("A=b=c",),
        device_nodes=(DeviceNode(path="/dev/x", permissions="rw"),),
        mounts=(Mount(host_path="/", container_path="/b"),),
        hooks=(Hook(hook_name="startContainer", path="/h", timeout=3),),
    )
    assert list(find_violations(edits)) == []
