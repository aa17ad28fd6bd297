"""A client of an API server from before v1 of resource.k8s.io, for tests that write v1.

Objects are said in the version that is served on their way there, and in v1 on their
way back. Patches go as they are: none of ours touch what differs. What a test asks for
in an older version itself stays as it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from contracts.kubernetes.decode import RESOURCE_GROUP, V1
from contracts.kubernetes.versions import from_v1, to_v1
from tests.lab.controlplane.client import JSON, Json, Kube, as_json, as_object

_PREFIX = f"/apis/{V1}/"


class OlderKube(Kube):
    """A client for tests that know v1 only."""

    def __init__(
        self,
        server: str,
        authority: Path,
        token: str,
        headers: Sequence[tuple[str, str]] = (),
        *,
        version: str,
    ) -> None:
        super().__init__(server, authority, token, headers)
        self._version = version
        self._api_version = f"{RESOURCE_GROUP}/{version}"

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        media: str,
        parameters: Mapping[str, str],
    ) -> bytes:
        if isinstance(body, dict) and media == JSON:
            body = self._written(body)
        if not path.startswith(_PREFIX):
            return await super()._send(method, path, body, media, parameters)
        raw = await super()._send(method, self._path(path), body, media, parameters)
        return as_json(self._read(as_object(raw)))

    async def watch(
        self, path: str, resource_version: str, **parameters: str
    ) -> AsyncGenerator[Json]:
        """Give what changes, in v1."""
        is_of_v1 = path.startswith(_PREFIX)
        events = super().watch(self._path(path), resource_version, **parameters)
        async with aclosing(events):
            async for event in events:
                found = event["object"]
                yield {**event, "object": self._read(found) if is_of_v1 else found}

    def _path(self, path: str) -> str:
        return path.replace(_PREFIX, f"/apis/{self._api_version}/", 1)

    def _written(self, body: Json) -> Json:
        if body.get("apiVersion") != V1:
            return body
        older = from_v1(str(body["kind"]), self._version, body)
        return {**older, "apiVersion": self._api_version}

    def _read(self, found: Json) -> Json:
        items = found.get("items")
        if isinstance(items, list):
            kind = str(found.get("kind", "")).removesuffix("List")
            return {**found, "items": [self._to_v1(kind, each) for each in items]}
        return self._to_v1(str(found.get("kind", "")), found)

    def _to_v1(self, kind: str, found: dict[str, Any]) -> Json:
        value = to_v1(kind, self._version, found, [])
        is_older = value.get("apiVersion") == self._api_version
        return {**value, "apiVersion": V1} if is_older else value
