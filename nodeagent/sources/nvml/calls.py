"""The calls of NVML that the source makes, as plain values.

A call has the name and the arguments of NVML's documentation (docs.nvidia.com/deploy/
nvml-api) and nvidia-ml-py, with tokens such as `gpu-0` in place of handles; structs are
objects with their documented fields, arrays are lists. So calls can be recorded on a
machine with GPUs and played on one without.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

T = TypeVar("T")

Argument = str | int
Answer = Any
"""Any JSON value."""

TIMEOUT = "NVML_ERROR_TIMEOUT"
GPU_IS_LOST = "NVML_ERROR_GPU_IS_LOST"
RESET_REQUIRED = "NVML_ERROR_RESET_REQUIRED"
LIBRARY_GONE = frozenset(
    {
        "NVML_ERROR_UNINITIALIZED",
        "NVML_ERROR_DRIVER_NOT_LOADED",
        "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        "NVML_ERROR_LIBRARY_NOT_FOUND",
    }
)
"""Errors after which no GPU can be read any longer."""


class NvmlError(Exception):
    """A call that NVML refused; `code` is the name of its return value."""

    def __init__(self, function: str, code: str) -> None:
        self.function = function
        self.code = code
        super().__init__(f"{function}: {code}")


class Nvml(Protocol):
    """The library, or a record of it. May be called from several threads."""

    def call(self, function: str, *arguments: Argument) -> Answer:
        """Call a function.

        Raises:
            NvmlError: it did not succeed.
        """
        ...


def ask(nvml: Nvml, kind: type[T], function: str, *arguments: Argument) -> T:
    """Call a function whose answer is of a known shape.

    Raises:
        NvmlError: it did not succeed, or answered something else.
    """
    answer = nvml.call(function, *arguments)
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise NvmlError(function, f"answer refused: {error}") from error


def find(nvml: Nvml, kind: type[T], function: str, *arguments: Argument) -> T | None:
    """Call a function that not every GPU or user has; None: no answer.

    Raises:
        NvmlError: the GPU or the whole library is gone.
    """
    try:
        return ask(nvml, kind, function, *arguments)
    except NvmlError as error:
        if error.code in LIBRARY_GONE or error.code in {GPU_IS_LOST, RESET_REQUIRED}:
            raise
        return None
