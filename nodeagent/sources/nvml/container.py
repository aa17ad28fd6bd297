"""Container edits for a GPU, or for a partition of one.

The driver's device nodes. Not its libraries: which there are is known to NVIDIA's own
tools, and the sources file adds what `nvidia-ctk cdi generate` lists (`edits`).
"""

from __future__ import annotations

from contracts.ids import DeviceID
from nodeagent.cdi import ContainerEdits, DeviceNode, name_variable
from nodeagent.sources.nvml.gpus import Gpu, MigDevice
from nodeagent.sources.sysfs.folder import FileTree, TreeError
from nodeagent.sources.sysfs.parse import parse_decimal

_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_MINOR = "DeviceFileMinor:"


def make_edits(device: DeviceID, uuid: str, nodes: tuple[str, ...]) -> ContainerEdits:
    """Give nodes, and variables that name the device and its UUID."""
    return ContainerEdits(
        env=(
            name_variable("DEVICE", device, str(device)),
            name_variable("UUID", device, uuid),
        ),
        device_nodes=tuple(
            DeviceNode(path=path, permissions="rw") for path in (*nodes, *_SHARED)
        ),
    )


def list_nodes(gpu: Gpu) -> tuple[str, ...]:
    """List the nodes of a whole GPU."""
    return (f"/dev/nvidia{gpu.minor}",)


def read_partition_nodes(
    proc: FileTree, gpu: Gpu, partition: MigDevice
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


def _read_minor(proc: FileTree, path: str) -> int:
    for line in proc.folder(path).read("access").splitlines():
        if line.startswith(_MINOR):
            number = parse_decimal(line.removeprefix(_MINOR).strip())
            if number is not None and number >= 0:
                return number
    raise TreeError(f"{path}/access", f"has no {_MINOR}")
