"""What an object of an old version becomes in v1, and what is lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

Json = dict[str, Any]


class Remark(Struct, frozen=True, kw_only=True):
    """Something that v1 has no word for."""

    subject: str
    """Kind and name of the object as its author wrote it."""
    field: str
    """The path in that object."""
    message: str
    is_error: bool = False
    """True if the object cannot be said in v1 without it."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.field}: {self.message}"


class Remarks:
    """Collects what is to be said of one object."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.subject = subject_of(raw)
        self.found: list[Remark] = []

    def note(self, field: str, message: str) -> None:
        """Name what v1 leaves out, and what to do instead."""
        self._add(field, message, is_error=False)

    def refuse(self, field: str, message: str) -> None:
        """Name what makes the object one that v1 cannot say."""
        self._add(field, message, is_error=True)

    def _add(self, field: str, message: str, *, is_error: bool) -> None:
        self.found.append(
            Remark(
                subject=self.subject, field=field, message=message, is_error=is_error
            )
        )

    @property
    def has_errors(self) -> bool:
        """True if the object cannot be said in v1."""
        return any(remark.is_error for remark in self.found)


def subject_of(raw: Mapping[str, Any]) -> str:
    """Name an object by kind, namespace and name."""
    metadata = mapping_in(raw, "metadata")
    parts = (metadata.get("namespace"), metadata.get("name"))
    name = "/".join(part for part in parts if isinstance(part, str) and part)
    return " ".join(filter(None, (str(raw.get("kind") or "object"), name)))


def mapping_in(raw: Any, *path: str) -> Json:
    """Return the map at a path; an empty one if there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return dict(raw) if isinstance(raw, Mapping) else {}


def list_in(raw: Any, *path: str) -> list[Any]:
    """Return the list at a path; an empty one if there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return list(raw) if isinstance(raw, list) else []


def text_in(raw: Any, *path: str) -> str:
    """Return the text at a path; an empty one if there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, str) else ""


def without_unset(fields: Json) -> Json:
    """Leave out fields that are unset: None, and what is empty."""
    return {key: value for key, value in fields.items() if value not in (None, [], {})}
