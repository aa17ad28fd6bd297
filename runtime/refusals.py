"""Refused messages are counted, logged and skipped; everything else goes on.

The one frame at every edge where others' words come in. One message or object that
cannot be read, is not valid or cannot be handled ends here, whatever was raised: it
changes nothing, and the next one is taken. Where it was a mistake of ours, and not of
its author, the log shows once where it happened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from contracts.announcing import Refusal
from contracts.errors import ContractsError, DecodeError
from contracts.messages import MAX_REASON
from runtime import metrics
from runtime.errors import MessageError, ServiceError
from runtime.log import get_logger
from runtime.wire import Refused

_ENTITY = re.compile(r"[^./]*")
_MOST_CHARACTERS = 1000
"""Of a subject in the log."""

log = get_logger(__name__)


_EXPECTED = (ContractsError, MessageError)
"""Errors in others' messages; any other error is a mistake of ours."""


class Source(Protocol):
    """The message of a stream that was refused."""

    @property
    def subject(self) -> str:
        """The subject that it came on."""

    @property
    def sequence(self) -> int:
        """Its place in its stream."""


class Guarded:
    """One message or object that is being handled.

    A class of its own: every message of a start passes through it, and one made by
    `contextlib` costs several times as much.
    """

    __slots__ = ("_refusals", "_source", "refused")

    def __init__(self, refusals: Refusals, source: Source | str) -> None:
        self._refusals = refusals
        self._source = source
        self.refused: Refused | None = None
        """Set behind the block when it could not be handled."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        expected = isinstance(error, _EXPECTED)
        if isinstance(error, ServiceError) and not expected:
            return False
        self.refused = _make_refusal(self._source, error)
        if not expected:
            self._refusals.show_mistake(self.refused.subject, error)
        self._refusals.note(self.refused, ours=not expected)
        return True


class Refusals:
    """The refusals of one service, or of one of its readers."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """How many were refused, by entity (the first part of the subject)."""
        self._shown: set[tuple[str, str, int]] = set()
        """Mistakes of ours whose traceback is in the log: type, file and line."""

    def note(self, refused: Refused, *, ours: bool = False) -> None:
        """Count and log what is refused (by a mistake of `ours`): the one form."""
        entity = _entity_of(refused.subject)
        self.counts[entity] += 1
        metrics.count_refused(entity, ours=ours)
        log.warning(
            "message.refused",
            subject=refused.subject[:_MOST_CHARACTERS],
            field=refused.field,
            reason=refused.reason,
            count=self.counts[entity],
        )

    def note_parts(self, source: Source, parts: Iterable[Refusal]) -> None:
        """Count and log what is left out of a message of which the rest counts."""
        for part in parts:
            self.note(
                Refused(
                    subject=source.subject,
                    field=part.field[:MAX_REASON],
                    reason=part.reason[:MAX_REASON],
                    sequence=source.sequence,
                )
            )

    def guard(self, source: Source | str) -> Guarded:
        """Handle one message, or the object of that name, in the block.

        `with refusals.guard(incoming) as guarded:` ends whatever the block raises, and
        notes it; then `guarded.refused` says why. What concerns the service itself
        (ServiceError: the bus is away, start again) goes on.
        """
        return Guarded(self, source)

    def show_mistake(self, subject: str, error: Exception) -> None:
        """Log where a mistake of ours is, the first time that it is made there."""
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        file = "" if at is None else at.tb_frame.f_code.co_filename
        place = (type(error).__name__, file, 0 if at is None else at.tb_lineno)
        if place not in self._shown:
            self._shown.add(place)
            subject = subject[:_MOST_CHARACTERS]
            log.error("message.failed", subject=subject, exc_info=error)


def _make_refusal(source: Source | str, error: Exception) -> Refused:
    expected = isinstance(error, _EXPECTED)
    reason = str(error) if expected else f"{type(error).__name__}: {_text_of(error)}"
    field = error.field if isinstance(error, DecodeError) else ""
    if isinstance(source, str):
        sequence = error.sequence if isinstance(error, MessageError) else 0
        subject = source
    else:
        subject, sequence = source.subject, source.sequence
    return Refused(
        subject=subject,
        field=field[:MAX_REASON],
        reason=reason[:MAX_REASON],
        sequence=sequence,
    )


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 # such as a number of more digits than Python prints
        return "cannot be told"


def _entity_of(subject: str) -> str:
    match = _ENTITY.match(subject)
    return subject if match is None else match[0]
