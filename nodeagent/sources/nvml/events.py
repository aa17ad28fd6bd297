"""Waits for events of GPUs in a thread: XIDs are told at once, to who waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from nodeagent.sources.nvml.calls import LIBRARY_GONE, TIMEOUT, Nvml, NvmlError, ask
from nodeagent.sources.nvml.gpus import Gpu
from nodeagent.sources.nvml.health import XID_EVENT, GpuEvent
from runtime.log import get_logger

log = get_logger(__name__)

MAX_EVENTS = 1024
_WAIT_MS = 5000
_PAUSE_S = 1.0


class Events:
    """Events that were heard and not yet taken."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._heard: deque[GpuEvent] = deque(maxlen=MAX_EVENTS)
        self._stop = threading.Event()
        self._set = ""

    def listen(self, gpus: Iterable[Gpu]) -> None:
        """Begin to wait for the events of some GPUs; of none if they have none.

        Raises:
            NvmlError: the library is gone.
        """
        try:
            self._set = ask(self._nvml, str, "nvmlEventSetCreate")
        except NvmlError as error:
            if error.code in LIBRARY_GONE:
                raise
            log.warning("events.unheard", reason=str(error))
            return
        registered = [gpu for gpu in gpus if self._register_gpu(gpu)]
        if registered:
            # A daemon: NVML cannot be interrupted, and nobody waits for its answer.
            threading.Thread(
                target=self._wait_for_events, name="nvml-events", daemon=True
            ).start()

    def _register_gpu(self, gpu: Gpu) -> bool:
        try:
            supported = ask(
                self._nvml, int, "nvmlDeviceGetSupportedEventTypes", gpu.token
            )
            if not supported & XID_EVENT:
                log.warning("events.unheard", gpu=gpu.uuid, reason="has no XID events")
                return False
            self._nvml.call("nvmlDeviceRegisterEvents", gpu.token, XID_EVENT, self._set)
        except NvmlError as error:
            log.warning("events.unheard", gpu=gpu.uuid, reason=str(error))
            return False
        return True

    def _wait_for_events(self) -> None:
        while not self._stop.is_set():
            try:
                event = ask(
                    self._nvml, GpuEvent, "nvmlEventSetWait_v2", self._set, _WAIT_MS
                )
            except NvmlError as error:
                if error.code == TIMEOUT:
                    continue
                log.warning("events.failed", reason=str(error))
                if error.code in LIBRARY_GONE:
                    return
                self._stop.wait(_PAUSE_S)
            else:
                self._heard.append(event)

    def take(self) -> list[GpuEvent]:
        """Return what was heard since the last call."""
        taken: list[GpuEvent] = []
        while self._heard:
            taken.append(self._heard.popleft())
        return taken

    def close(self) -> None:
        """Let the thread end when its wait does."""
        self._stop.set()
