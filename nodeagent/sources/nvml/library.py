"""NVML itself, through nvidia-ml-py: handles become tokens, structs plain values.

The only importer of pynvml, and only when it is opened: nodes without the driver have
no use for it. Each thread may call; tokens are given once and kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any

from nodeagent.sources.nvml.calls import Answer, Argument, NvmlError

_MAX_PLACEMENTS = 64


def open_library() -> Library:
    """Load NVML and initialise it.

    Raises:
        NvmlError: nvidia-ml-py is not installed, or there is no driver.
    """
    try:
        import pynvml  # noqa: PLC0415 # large, and only for nodes with its driver
    except ImportError as error:
        raise NvmlError("import pynvml", "NVML_ERROR_LIBRARY_NOT_FOUND") from error
    library = Library(pynvml)
    library.call("nvmlInit_v2")
    return library


class Library:
    """The library of this machine's driver."""

    def __init__(self, pynvml: ModuleType) -> None:
        self._pynvml = pynvml
        self._handles: dict[str, Any] = {}
        self._tokens: dict[int, str] = {}
        self._codes = {
            value: name
            for name, value in vars(pynvml).items()
            if name.startswith("NVML_ERROR_") and isinstance(value, int)
        }
        self._special: dict[str, Callable[..., Answer]] = {
            "nvmlDeviceGetHandleByIndex_v2": self._find_gpu,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._mig_device,
            "nvmlDeviceGetGpuInstanceById": self._gpu_instance,
            "nvmlEventSetCreate": self._event_set,
            "nvmlDeviceGetGpuFabricInfoV": self._read_fabric,
            "nvmlDeviceGetGpuInstancePossiblePlacements_v2": self._list_placements,
        }

    def call(self, function: str, *arguments: Argument) -> Answer:
        """Call a function of NVML.

        Raises:
            NvmlError: it did not succeed, or this version does not have it.
        """
        try:
            special = self._special.get(function)
            if special is not None:
                return special(*arguments)
            return self._simplify_value(
                self._find_function(function)(*map(self._take_argument, arguments))
            )
        except self._pynvml.NVMLError as error:
            code = self._codes.get(error.value, f"NVML_ERROR {error.value}")
            raise NvmlError(function, code) from error
        except (AttributeError, TypeError, ValueError, OSError) as error:
            raise NvmlError(function, f"{type(error).__name__}: {error}") from error

    def _find_function(self, name: str) -> Callable[..., Any]:
        """Find a function; nvidia-ml-py leaves the version out of some names."""
        module = self._pynvml
        found = getattr(module, name, None) or getattr(module, name.rpartition("_v")[0])
        if not callable(found):
            raise TypeError(f"{name} is not a function")
        return found  # type: ignore[no-any-return] # it is untyped

    def _take_argument(self, argument: Argument) -> Any:
        if isinstance(argument, int):
            return argument
        return self._handles.get(argument, argument)

    def _give_handle(self, token: str, handle: Any) -> str:
        self._handles[token] = handle
        self._tokens[_address(handle)] = token
        return token

    def _find_gpu(self, index: int) -> str:
        handle = self._pynvml.nvmlDeviceGetHandleByIndex(index)
        return self._give_handle(f"gpu-{index}", handle)

    def _mig_device(self, gpu: str, index: int) -> str:
        handle = self._pynvml.nvmlDeviceGetMigDeviceHandleByIndex(
            self._handles[gpu], index
        )
        return self._give_handle(f"{gpu}/mig-{index}", handle)

    def _gpu_instance(self, gpu: str, number: int) -> str:
        handle = self._pynvml.nvmlDeviceGetGpuInstanceById(self._handles[gpu], number)
        return self._give_handle(f"{gpu}/instance-{number}", handle)

    def _event_set(self) -> str:
        return self._give_handle("events", self._pynvml.nvmlEventSetCreate())

    def _read_fabric(self, gpu: str) -> Answer:
        info = self._pynvml.c_nvmlGpuFabricInfo_v2_t()
        self._pynvml.nvmlDeviceGetGpuFabricInfoV(self._handles[gpu], ctypes.byref(info))
        return self._simplify_value(info)

    def _list_placements(self, gpu: str, profile: int) -> Answer:
        found = (self._pynvml.c_nvmlGpuInstancePlacement_t * _MAX_PLACEMENTS)()
        count = ctypes.c_uint(_MAX_PLACEMENTS)
        self._pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(
            self._handles[gpu], profile, ctypes.byref(found), ctypes.byref(count)
        )
        return [self._simplify_value(found[index]) for index in range(count.value)]

    def _simplify_value(self, value: Any) -> Answer:
        """Make JSON's values of ctypes'."""
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, ctypes.Structure):
            return {
                field[0]: self._simplify_value(getattr(value, field[0]))
                for field in value._fields_
            }
        if isinstance(value, ctypes.Array | list | tuple):
            return [self._simplify_value(item) for item in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return self._tokens.get(_address(value), "")  # a handle


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
