"""What a container that holds a GPU, or a partition of one, gets.

The driver's device nodes; its libraries only as `mounts` names them, since which there
are is known to NVIDIA's own tools. `nvidia-ctk cdi generate` lists them, and where the
runtime is NVIDIA's, NVIDIA_VISIBLE_DEVICES makes it add them.
"""

from __future__ import annotations

from contracts.ids import DeviceID
from nodeagent.cdi import ContainerEdits, DeviceNode, Mount, name_variable
from nodeagent.sources.nvml.gpus import Gpu, MigDevice
from nodeagent.sources.sysfs.parse import parse_decimal
from nodeagent.sources.sysfs.tree import Tree, TreeError

_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_READ_ONLY = ("ro", "nosuid", "nodev", "bind")
_MINOR = "DeviceFileMinor:"


def make_edits(
    device: DeviceID, uuid: str, nodes: tuple[str, ...], mounts: tuple[str, ...]
) -> ContainerEdits:
    """Give nodes, libraries and variables that name the device and its UUID."""
    return ContainerEdits(
        env=(
            name_variable("DEVICE", device, str(device)),
            name_variable("UUID", device, uuid),
        ),
        device_nodes=tuple(
            DeviceNode(path=path, permissions="rw") for path in (*nodes, *_SHARED)
        ),
        mounts=tuple(
            Mount(host_path=path, container_path=path, options=_READ_ONLY)
            for path in mounts
        ),
    )


def list_nodes(gpu: Gpu) -> tuple[str, ...]:
    """List the nodes of a whole GPU."""
    return (f"/dev/nvidia{gpu.minor}",)


def read_partition_nodes(
    proc: Tree, gpu: Gpu, partition: MigDevice
) -> tuple[str, ...]:
    """Read the nodes of a partition: its GPU's, and one for each of its instances.

    Source: NVIDIA MIG User Guide, device nodes and capabilities.

    Raises:
        TreeError: the driver does not show them.
    """
    path = f"driver/nvidia/capabilities/gpu{gpu.minor}/mig/gi{partition.gpu_instance}"
    instances = (path, f"{path}/ci{partition.compute_instance}")
    numbers = (_read_minor(proc, instance) for instance in instances)
    caps = tuple(f"/dev/nvidia-caps/nvidia-cap{number}" for number in numbers)
    return (*list_nodes(gpu), *caps)


def _read_minor(proc: Tree, path: str) -> int:
    for line in proc.folder(path).read("access").splitlines():
        if line.startswith(_MINOR):
            number = parse_decimal(line.removeprefix(_MINOR).strip())
            if number is not None and number >= 0:
                return number
    raise TreeError(f"{path}/access", f"has no {_MINOR}")
