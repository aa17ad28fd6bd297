"""Records of NVML's answers: made where GPUs are, played where none are.

    python -m nodeagent.sources.nvml > gpus.json

makes one of this machine's GPUs. Their UUIDs are in it. A call that was made several
times has its answers in order; the last one is given again from then on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct, structs

from contracts.codec import encode
from nodeagent.sources.nvml.calls import TIMEOUT, Answer, Argument, Nvml, NvmlError


class Answered(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a call was answered: by a result, or by an error's name."""

    result: Answer = None
    error: str = ""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A call, and its answers in the order in which they were given."""

    function: str
    arguments: tuple[str | int, ...] = ()
    answers: tuple[Answered, ...]


class Recording(Struct, frozen=True, kw_only=True):
    """All calls that were made."""

    origin: str
    """Where it is from: a machine, or the documents it was written from."""
    calls: tuple[RecordedCall, ...] = ()


class Recorder:
    """Makes calls, and remembers them."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, tuple[Argument, ...]], list[Answered]] = {}

    def call(self, function: str, *arguments: Argument) -> Answer:
        """Call a function and remember its answer.

        Raises:
            NvmlError: it did not succeed; that is remembered too.
        """
        try:
            result = self._nvml.call(function, *arguments)
        except NvmlError as error:
            self._record_answer(function, arguments, Answered(error=error.code))
            raise
        self._record_answer(function, arguments, Answered(result=result))
        return result

    def _record_answer(
        self, function: str, arguments: tuple[Argument, ...], answered: Answered
    ) -> None:
        with self._lock:
            answers = self._answers.setdefault((function, arguments), [])
            if not answers or answers[-1] != answered:
                answers.append(answered)

    def finish(self, origin: str) -> Recording:
        """Return what was recorded so far."""
        with self._lock:
            return Recording(
                origin=origin,
                calls=tuple(
                    RecordedCall(
                        function=function, arguments=arguments, answers=tuple(answers)
                    )
                    for (function, arguments), answers in self._answers.items()
                ),
            )


class Player:
    """Answers as it was recorded; a call that was not recorded is not supported."""

    def __init__(
        self, recording: Recording, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._sleep = sleep
        self._lock = threading.Lock()
        self._calls = {
            (call.function, call.arguments): list(call.answers)
            for call in recording.calls
        }

    def call(self, function: str, *arguments: Argument) -> Answer:
        """Give the next recorded answer of a call; a time-out takes its time.

        Raises:
            NvmlError: that was the answer.
        """
        with self._lock:
            answers = self._calls.get((function, arguments))
            if not answers:
                raise NvmlError(function, "NVML_ERROR_NOT_SUPPORTED")
            answered = answers.pop(0) if len(answers) > 1 else answers[0]
        if answered.error == TIMEOUT:
            self._sleep(int(arguments[-1]) / 1000)
        if answered.error:
            raise NvmlError(function, answered.error)
        return answered.result

    def answer(
        self, function: str, arguments: tuple[Argument, ...], *answers: Answered
    ) -> None:
        """Answer a call otherwise from now on."""
        with self._lock:
            self._calls[function, arguments] = list(answers)


def read_recording(text: str) -> Recording:
    """Read a recording.

    Raises:
        ValueError: it is none.
    """
    return msgspec.json.decode(text, type=Recording)


def write_recording(recording: Recording) -> bytes:
    """Write a recording as JSON, in order of its calls."""
    calls = sorted(
        recording.calls, key=lambda call: (call.function, str(call.arguments))
    )
    return encode(structs.replace(recording, calls=tuple(calls)))
