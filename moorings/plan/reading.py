"""The objects of a plan, from documents; what cannot be used is named and passed by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from contracts.errors import ContractsError, UnknownKindError
from contracts.kubernetes.decode import decode_object, flatten
from moorings.plan.objects import PlanObject

Say = Callable[[str], None]


class Reader:
    """Reads objects and remembers what was wrong with some."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._noted: set[str] = set()
        self.refused = 0
        """Objects of known kinds that could not be read."""

    def read(self, documents: Iterable[tuple[str, Any]]) -> Iterator[PlanObject]:
        """Decode (source, raw) pairs; unknown kinds are named once."""
        for source, raw in documents:
            try:
                decoded = decode_object(raw)
            except UnknownKindError as error:
                self._skip(str(error))
                continue
            except ContractsError as error:
                self.refused += 1
                self._say(f"error: {source}: {error}")
                continue
            for path in decoded.unknown:
                key = f"{decoded.kind} {path}"
                if key not in self._noted:
                    self._noted.add(key)
                    self._say(f"note: {source}: {key} is not a field we know; ignored")
            yield PlanObject(source=source, raw=dict(raw), decoded=decoded)

    def read_list(self, objects: list[Any]) -> list[PlanObject]:
        """Decode a parsed list, Lists taken apart."""
        documents = (
            (f"objects[{index}]", document)
            for index, raw in enumerate(objects)
            for document in flatten(raw)
        )
        return list(self.read(documents))

    def _skip(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._say(f"note: {text}; skipped")
