"""The GPUs of a node: their figures, their place, and their MIG partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from nodeagent.sources.nvml.calls import Nvml, NvmlError, ask, find

MAX_GPUS = 64
_MAX_LINKS = 36
_MAX_PROFILES = 32
_PROFILE_VERSION = 2
_FABRIC_COMPLETED = 3
_ACTIVE = 1
_UUID = re.compile(r"[A-Za-z0-9-]{1,96}", re.ASCII)
WHOLE = 0xFFFFFFFF
"""In place of an instance's number: the whole GPU."""


class GpuMemory(Struct, frozen=True):
    """nvmlMemory_t; bytes."""

    total: int


class PciInfo(Struct, frozen=True, rename="camel"):
    """nvmlPciInfo_t."""

    bus_id: str


class Fabric(Struct, frozen=True, rename="camel"):
    """nvmlGpuFabricInfoV_t: which NVLink domain a GPU is in, and which clique of it."""

    cluster_uuid: tuple[int, ...]
    status: int
    clique_id: int
    state: int

    @property
    def is_joined(self) -> bool:
        """True if the fabric manager has finished with success."""
        return self.state == _FABRIC_COMPLETED and self.status == 0

    @property
    def uuid(self) -> str:
        """The domain's UUID; empty: it is in none."""
        digits = bytes(number & 0xFF for number in self.cluster_uuid).hex()
        if len(digits) != 32 or not digits.strip("0"):
            return ""
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return "-".join(parts)


class Profile(Struct, frozen=True, rename="camel"):
    """nvmlGpuInstanceProfileInfo_v2_t: a kind of partition."""

    id: int
    slice_count: int
    multiprocessor_count: int
    copy_engine_count: int
    decoder_count: int
    encoder_count: int
    jpeg_count: int
    ofa_count: int
    memory_size_mb: int = 0
    name: str = ""
    """Such as `MIG 1g.10gb`."""


class MigPlacement(Struct, frozen=True):
    """nvmlGpuInstancePlacement_t: memory slices."""

    start: int
    size: int


class InstanceInfo(Struct, frozen=True, rename="camel"):
    """nvmlGpuInstanceInfo_t."""

    id: int
    profile_id: int
    placement: MigPlacement


class MigDevice(Struct, frozen=True, kw_only=True):
    """A partition with all of its compute slices in one instance."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    profile: Profile
    placement: MigPlacement


class Gpu(Struct, frozen=True, kw_only=True):
    """A GPU."""

    token: str
    uuid: str
    minor: int
    """Its node is /dev/nvidiaN."""
    name: str = ""
    brand: int = 0
    architecture: int = 0
    compute: tuple[int, ...] = ()
    """CUDA compute capability: major and minor."""
    memory_bytes: int | None = None
    bus_id: str = ""
    """domain:bus:device.function with four digits of domain; empty: of more."""
    active_links: int = 0
    fabric: Fabric | None = None
    is_mig: bool = False
    """It is partitioned: nothing runs on it as a whole."""
    profiles: tuple[Profile, ...] = ()
    partitions: tuple[MigDevice, ...] = ()
    withheld: tuple[str, ...] = ()
    """Why partitions that are there are not offered."""


class Driver(Struct, frozen=True):
    """Versions that all GPUs of a node share."""

    driver: str
    cuda: int
    """1000 times the major version and 10 times the minor one."""


def read_driver(nvml: Nvml) -> Driver:
    """Read the versions.

    Raises:
        NvmlError: the library is gone.
    """
    return Driver(
        find(nvml, str, "nvmlSystemGetDriverVersion") or "",
        find(nvml, int, "nvmlSystemGetCudaDriverVersion_v2") or 0,
    )


def read_gpus(nvml: Nvml) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """Read all GPUs, and why some could not be read.

    Raises:
        NvmlError: the library is gone.
    """
    gpus: list[Gpu] = []
    unread: list[str] = []
    count = ask(nvml, int, "nvmlDeviceGetCount_v2")
    for index in range(min(max(count, 0), MAX_GPUS)):
        try:
            token = ask(nvml, str, "nvmlDeviceGetHandleByIndex_v2", index)
            gpus.append(_read_gpu(nvml, token))
        except NvmlError as error:
            unread.append(f"GPU {index}: {error}")
    return tuple(gpus), tuple(unread)


def _read_gpu(nvml: Nvml, token: str) -> Gpu:
    uuid = ask(nvml, str, "nvmlDeviceGetUUID", token)
    if not _UUID.fullmatch(uuid):
        raise NvmlError("nvmlDeviceGetUUID", "answer refused: is not a UUID")
    memory = find(nvml, GpuMemory, "nvmlDeviceGetMemoryInfo", token)
    pci = find(nvml, PciInfo, "nvmlDeviceGetPciInfo_v3", token)
    mode = find(nvml, tuple[int, ...], "nvmlDeviceGetMigMode", token) or (0,)
    is_mig = mode[0] == _ACTIVE
    profiles = tuple(_read_profiles(nvml, token)) if is_mig else ()
    partitions, withheld = (
        _read_partitions(nvml, token, profiles) if is_mig else ((), ())
    )
    return Gpu(
        token=token,
        uuid=uuid,
        minor=ask(nvml, int, "nvmlDeviceGetMinorNumber", token),
        name=find(nvml, str, "nvmlDeviceGetName", token) or "",
        brand=find(nvml, int, "nvmlDeviceGetBrand", token) or 0,
        architecture=find(nvml, int, "nvmlDeviceGetArchitecture", token) or 0,
        compute=find(nvml, tuple[int, ...], "nvmlDeviceGetCudaComputeCapability", token)
        or (),
        memory_bytes=memory.total if memory else None,
        bus_id=_shorten_bus_id(pci.bus_id) if pci else "",
        active_links=_count_links(nvml, token),
        fabric=find(nvml, Fabric, "nvmlDeviceGetGpuFabricInfoV", token),
        is_mig=is_mig,
        profiles=profiles,
        partitions=partitions,
        withheld=withheld,
    )


def _shorten_bus_id(bus_id: str) -> str:
    """Write NVML's eight digits of domain as Linux does, in lower case."""
    domain, colon, rest = bus_id.lower().partition(":")
    if not colon or domain[:-4].strip("0"):
        return ""
    return f"{domain[-4:]}:{rest}"


def _count_links(nvml: Nvml, token: str) -> int:
    count = 0
    for link in range(_MAX_LINKS):
        state = find(nvml, int, "nvmlDeviceGetNvLinkState", token, link)
        if state is None:
            break
        count += state == _ACTIVE
    return count


def _read_profiles(nvml: Nvml, token: str) -> Iterator[Profile]:
    for index in range(_MAX_PROFILES):
        profile = find(
            nvml,
            Profile,
            "nvmlDeviceGetGpuInstanceProfileInfoV",
            token,
            index,
            _PROFILE_VERSION,
        )
        if profile is not None:
            yield profile


def _read_partitions(
    nvml: Nvml, token: str, profiles: tuple[Profile, ...]
) -> tuple[tuple[MigDevice, ...], tuple[str, ...]]:
    """Read the partitions that are there.

    One with several compute instances is withheld: they share its memory, which no
    counter of its own can say.
    """
    by_id = {profile.id: profile for profile in profiles}
    found: dict[int, list[MigDevice]] = {}
    withheld: list[str] = []
    for index in range(find(nvml, int, "nvmlDeviceGetMaxMigDeviceCount", token) or 0):
        mig = find(nvml, str, "nvmlDeviceGetMigDeviceHandleByIndex", token, index)
        if mig is None:
            continue
        try:
            device = _read_partition(nvml, token, mig, by_id)
        except NvmlError as error:
            withheld.append(f"{mig}: {error}")
            continue
        found.setdefault(device.gpu_instance, []).append(device)
    for number, devices in found.items():
        if len(devices) > 1:
            withheld.append(f"{token}: GPU instance {number} has compute instances")
    single = (devices[0] for devices in found.values() if len(devices) == 1)
    return tuple(single), tuple(withheld)


def _read_partition(
    nvml: Nvml, gpu: str, mig: str, profiles: dict[int, Profile]
) -> MigDevice:
    number = ask(nvml, int, "nvmlDeviceGetGpuInstanceId", mig)
    instance = ask(nvml, str, "nvmlDeviceGetGpuInstanceById", gpu, number)
    info = ask(nvml, InstanceInfo, "nvmlGpuInstanceGetInfo", instance)
    if info.profile_id not in profiles:
        raise NvmlError("nvmlGpuInstanceGetInfo", "answer refused: unknown profile")
    return MigDevice(
        uuid=ask(nvml, str, "nvmlDeviceGetUUID", mig),
        gpu_instance=number,
        compute_instance=ask(nvml, int, "nvmlDeviceGetComputeInstanceId", mig),
        profile=profiles[info.profile_id],
        placement=info.placement,
    )
