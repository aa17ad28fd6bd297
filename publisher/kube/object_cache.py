"""Objects of one kind by name, of each the newest that was seen or written.

A watch lags behind our own writes: what it says of an object only counts when it
is newer than what a write has answered. Pure; knows no kind and no API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from contracts.meta import ObjectMeta


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=_Object)


class ObjectCache(Generic[T]):
    """The newest known version of each object."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._deleted: dict[str, str] = {}
        """Uids, by name, of what we deleted and the watch still shows."""

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, name: str) -> T | None:
        """Return the object of a name."""
        return self._objects.get(name)

    def put(self, obj: T) -> bool:
        """Note an object as it is; False: it is not news."""
        metadata = obj.metadata
        cached = self._objects.get(metadata.name)
        if self._deleted.get(metadata.name) == metadata.uid:
            return False
        version = metadata.version_number
        if cached is not None and version <= cached.metadata.version_number:
            return False
        self._objects[metadata.name] = obj
        return True

    def remove(self, name: str) -> T | None:
        """Note that the watch shows an object no more; returns it if that is news."""
        if self._deleted.pop(name, None) is not None:
            return None
        return self._objects.pop(name, None)

    def note_deleted(self, obj: T) -> None:
        """Note that we deleted an object, which the watch does not know yet."""
        metadata = obj.metadata
        cached = self._objects.get(metadata.name)
        if cached is not None and cached.metadata.uid == metadata.uid:
            del self._objects[metadata.name]
            self._deleted[metadata.name] = metadata.uid
