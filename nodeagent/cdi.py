"""Edits that give a container its devices, and the CDI files with them.

Structs of the Container Device Interface, version 1.1 (cncf-tags/container-device-
interface, SPEC.md). Runtimes refuse files that say more than their stated version
knows, so each file states the lowest version that has all it uses. Pure; what a source
says is checked here before it is written anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from posixpath import normpath
from types import MappingProxyType

from msgspec import Struct

from contracts.codec import encode
from contracts.ids import DeviceID, DriverName

MAX_EDITS = 1024
"""Entries of each list of one device."""
_MAX_TEXT = 4096
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*=[^\0]*", re.ASCII | re.DOTALL)
_NO_VARIABLE = re.compile(r"[^A-Za-z0-9]", re.ASCII)
_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}", re.ASCII)
_HOOK_NAMES = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)
_NODE_TYPES = ("", "b", "c", "u", "p")
_CLASS = "claim"


class _CdiStruct(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """A part of a CDI file; what others write is read strictly."""


class DeviceNode(_CdiStruct, frozen=True, kw_only=True):
    """A device node that the container gets."""

    path: str
    """In the container."""
    host_path: str = ""
    """On the node; empty: the same."""
    type: str = ""
    """`b`, `c`, `u` or `p`; empty, with `major` and `minor`: as on the node."""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""
    """Of `r`, `w` and `m`; empty: the runtime's `rwm`."""
    uid: int | None = None
    gid: int | None = None


class NetDevice(_CdiStruct, frozen=True, kw_only=True):
    """A network interface that is moved into the container (CDI 1.1)."""

    host_interface_name: str
    name: str


class Mount(_CdiStruct, frozen=True, kw_only=True):
    """A file or folder of the node that the container sees."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(_CdiStruct, frozen=True, kw_only=True):
    """A program of the node that the runtime runs for the container."""

    hook_name: str
    """`createContainer` and the like, as the OCI runtime specification has them."""
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None
    """Seconds."""


class ContainerEdits(_CdiStruct, frozen=True, kw_only=True):
    """Edits of a container that holds a device; empty: no CDI is needed."""

    env: tuple[str, ...] = ()
    """`NAME=value` each."""
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[int, ...] = ()


class CdiDevice(_CdiStruct, frozen=True, kw_only=True):
    """One device of a CDI file."""

    name: str
    container_edits: ContainerEdits


class CdiSpec(_CdiStruct, frozen=True, kw_only=True):
    """A CDI file."""

    cdi_version: str
    kind: str
    annotations: dict[str, str] = {}
    """Only we read them; keys are qualified names as in Kubernetes."""
    devices: tuple[CdiDevice, ...]


def kind_of(driver: DriverName) -> str:
    """Return the kind of a driver's devices; a vendor has to begin with a letter."""
    return f"k8s.{driver}/{_CLASS}"


def qualify(driver: DriverName, name: str) -> str:
    """Return the name by which kubelet tells a runtime of a device."""
    return f"{kind_of(driver)}={name}"


def write_spec(
    driver: DriverName,
    devices: Mapping[str, ContainerEdits],
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Write a CDI file of some devices by name; same devices, same bytes.

    Each must have something to edit: runtimes refuse the whole file else.
    """
    spec = CdiSpec(
        cdi_version=_find_version(devices.values()),
        kind=kind_of(driver),
        annotations=dict(annotations),
        devices=tuple(
            CdiDevice(name=name, container_edits=devices[name])
            for name in sorted(devices)
        ),
    )
    return encode(spec)


def name_variable(what: str, device: DeviceID, value: str) -> str:
    """Write a variable about one device, such as `MOORINGS_DEVICE_N1_GPU_0=...`.

    The device is in its name: a container may hold several.
    """
    name = _NO_VARIABLE.sub("_", f"{device.pool}_{device.device}").upper()
    return f"MOORINGS_{what}_{name}={value}"


def find_violations(edits: ContainerEdits) -> Iterator[str]:
    """Yield what a runtime must not be given: `field: rule` each."""
    for field in edits.__struct_fields__:
        if len(getattr(edits, field)) > MAX_EDITS:
            yield f"{field}: must have at most {MAX_EDITS} entries"
            return
    yield from _find_in_env("env", edits.env)
    for index, node in enumerate(edits.device_nodes):
        yield from _find_in_node(f"deviceNodes[{index}]", node)
    for index, net in enumerate(edits.net_devices):
        for name in (net.host_interface_name, net.name):
            if not _INTERFACE.fullmatch(name) or name in {".", ".."}:
                yield f"netDevices[{index}]: {name[:64]!r} is not an interface name"
    for index, mount in enumerate(edits.mounts):
        yield from _find_in_path(f"mounts[{index}].hostPath", mount.host_path)
        yield from _find_in_path(f"mounts[{index}].containerPath", mount.container_path)
        yield from _find_in_texts(f"mounts[{index}].options", mount.options)
    for index, hook in enumerate(edits.hooks):
        yield from _find_in_hook(f"hooks[{index}]", hook)
    if any(not 0 < gid < 2**32 for gid in edits.additional_gids):
        yield "additionalGids: must be from 1 to 2^32 - 1"


def _find_in_node(field: str, node: DeviceNode) -> Iterator[str]:
    yield from _find_in_path(f"{field}.path", node.path)
    if node.host_path:
        yield from _find_in_path(f"{field}.hostPath", node.host_path)
    if node.type not in _NODE_TYPES:
        yield f"{field}.type: must be b, c, u or p"
    if not set(node.permissions) <= set("rwm"):
        yield f"{field}.permissions: must be of r, w and m"
    numbers = (node.major, node.minor, node.uid or 0, node.gid or 0)
    if any(not 0 <= number < 2**32 for number in numbers):
        yield f"{field}: numbers must be from 0 to 2^32 - 1"
    if not 0 <= (node.file_mode or 0) <= 0o777:
        yield f"{field}.fileMode: must be from 0 to 0777"


def _find_in_hook(field: str, hook: Hook) -> Iterator[str]:
    if hook.hook_name not in _HOOK_NAMES:
        yield f"{field}.hookName: must be one of {', '.join(_HOOK_NAMES)}"
    yield from _find_in_path(f"{field}.path", hook.path)
    yield from _find_in_texts(f"{field}.args", hook.args)
    yield from _find_in_env(f"{field}.env", hook.env)
    if hook.timeout is not None and not 0 < hook.timeout < 2**31:
        yield f"{field}.timeout: must be seconds, at least 1"


def _find_in_env(field: str, env: Iterable[str]) -> Iterator[str]:
    for index, variable in enumerate(env):
        if not _VARIABLE.fullmatch(variable) or len(variable) > _MAX_TEXT:
            yield f"{field}[{index}]: must be NAME=value, at most {_MAX_TEXT} bytes"


def _find_in_texts(field: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if "\0" in text or len(text) > _MAX_TEXT:
            yield f"{field}: must be text of at most {_MAX_TEXT} bytes"


def _find_in_path(field: str, path: str) -> Iterator[str]:
    """Require an absolute path without `..`."""
    if (
        not path.startswith("/")
        or path.startswith("//")
        or normpath(path) != path
        or not path.isprintable()
        or len(path) > _MAX_TEXT
    ):
        yield f"{field}: {path[:64]!r} is not an absolute path without `.` and `..`"


def _find_version(edits: Iterable[ContainerEdits]) -> str:
    """Return the lowest version that knows all of it (CDI SPEC.md, minimum versions).

    Nothing under 0.6: kubelet needs runtimes that are newer than that.
    """
    edits = tuple(edits)
    if any(edit.net_devices for edit in edits):
        return "1.1.0"
    if any(edit.additional_gids for edit in edits):
        return "0.7.0"
    return "0.6.0"
