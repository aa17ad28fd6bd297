"""The API server as tests speak with it: JSON objects in and out, one user.

An object is named by itself: what has apiVersion, kind and metadata can be read,
changed, deleted and waited for. Knows no kind in particular.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from runtime.kube.sockets import closing_sockets

Json = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class RefusedError(Exception):
    """The API server said no."""

    def __init__(self, method: str, path: str, status: int, answer: Json) -> None:
        self.status = status
        self.reason: str = answer.get("reason", "")
        self.message: str = answer.get("message", "")
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class Kube:
    """A client of one API server as one user; closes with its block."""

    def __init__(
        self,
        server: str,
        authority: Path,
        token: str,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._server = server
        self._authority = authority
        self._token = token
        self._headers = [("Authorization", f"Bearer {token}"), *headers]
        self._session: aiohttp.ClientSession | None = None
        self._open = AsyncExitStack()

    def acting_as(
        self, user: str, groups: Sequence[str] = (), extra: Mapping[str, str] = {}
    ) -> Kube:
        """Make a client that acts as somebody else, who need not exist; for admins."""
        headers = [("Impersonate-User", user)]
        headers += [("Impersonate-Group", group) for group in groups]
        headers += [
            (f"Impersonate-Extra-{quote(key, safe='')}", value)
            for key, value in extra.items()
        ]
        return Kube(self._server, self._authority, self._token, headers)

    async def __aenter__(self) -> Self:
        trusted = ssl.create_default_context(cafile=str(self._authority))
        make_socket = await self._open.enter_async_context(closing_sockets())
        connector = aiohttp.TCPConnector(
            ssl=trusted, limit=0, socket_factory=make_socket
        )
        self._session = await self._open.enter_async_context(
            aiohttp.ClientSession(
                self._server, connector=connector, headers=self._headers
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = JSON,
        **parameters: str,
    ) -> Json:
        """Send a request and give what comes back.

        Raises:
            RefusedError: the API server says no.
            aiohttp.ClientError: it cannot be reached.
        """
        raw = await self._send(method, path, body, media, parameters)
        return as_object(raw)

    async def send_bytes(self, method: str, path: str, body: bytes = b"") -> None:
        """Create or delete what Python does not read or write as JSON.

        Raises:
            RefusedError: the API server says no.
            aiohttp.ClientError: it cannot be reached.
        """
        await self._send(method, path, body or None, JSON, {})

    async def text(self, path: str) -> str:
        """Read what is no JSON, such as metrics.

        Raises:
            RefusedError: the API server says no.
            aiohttp.ClientError: it cannot be reached.
        """
        return (await self._send("GET", path, None, JSON, {})).decode()

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        media: str,
        parameters: Mapping[str, str],
    ) -> bytes:
        assert self._session is not None
        data = body if isinstance(body, bytes) else None
        if data is None and body is not None:
            data = as_json(body)
        kind = {"Content-Type": media}
        async with self._session.request(
            method, path, data=data, params=parameters, headers=kind
        ) as answer:
            raw = await answer.read()
            if answer.status >= 400:
                raise RefusedError(method, path, answer.status, as_object(raw))
            return raw

    async def create(self, resource: Json, **parameters: str) -> Json:
        """Create an object."""
        path = path_of({**resource, "metadata": {**resource["metadata"], "name": ""}})
        return await self.request("POST", path, resource, **parameters)

    async def get(self, resource: Json) -> Json:
        """Read an object again."""
        return await self.request("GET", path_of(resource))

    async def update(self, resource: Json, subresource: str = "") -> Json:
        """Replace an object, or its subresource."""
        return await self.request("PUT", path_of(resource, subresource), resource)

    async def patch(
        self, resource: Json, patch: object, subresource: str = "", media: str = MERGE
    ) -> Json:
        """Change an object, or its subresource; a list is a JSON patch."""
        if isinstance(patch, list):
            media = JSON_PATCH
        return await self.request(
            "PATCH", path_of(resource, subresource), patch, media=media
        )

    async def delete(self, resource: Json, grace_s: int | None = None) -> Json:
        """Delete an object; only this one if it has a uid."""
        options: Json = {}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid := resource["metadata"].get("uid"):
            options["preconditions"] = {"uid": uid}
        return await self.request("DELETE", path_of(resource), options)

    async def list(
        self, api_version: str, kind: str, namespace: str = "", **parameters: str
    ) -> list[Json]:
        """Read all objects of a kind, each complete with what names it."""
        path = path_of(named(api_version, kind, "", namespace))
        answer = await self.request("GET", path, **parameters)
        return [{"apiVersion": api_version, "kind": kind, **i} for i in answer["items"]]

    async def watch(
        self, path: str, resource_version: str, **parameters: str
    ) -> AsyncGenerator[Json]:
        """Give what changes after a version until the server ends it.

        Raises:
            RefusedError: the version is gone, or the server says no.
            aiohttp.ClientError: the connection is lost.
        """
        assert self._session is not None
        query = {"watch": "1", "resourceVersion": resource_version, **parameters}
        no_limit = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, params=query, timeout=no_limit) as answer:
            if answer.status >= 400:
                refusal = as_object(await answer.read())
                raise RefusedError("WATCH", path, answer.status, refusal)
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        code = event["object"].get("code", 0)
                        raise RefusedError("WATCH", path, code, event["object"])
                    yield event

    @asynccontextmanager
    async def namespace(self, **labels: str) -> AsyncIterator[str]:
        """Make a namespace in which pods can be created; all in it goes afterwards."""
        space = named("v1", "Namespace", f"test-{secrets.token_hex(4)}")
        name: str = space["metadata"]["name"]
        space["metadata"]["labels"] = labels
        await self.create(space)
        try:
            account = named("v1", "ServiceAccount", "default", name)
            await self.until(account, lambda _: True)
            yield name
        finally:
            # Nobody may be left to end the pods: they are not asked.
            pods = path_of(named("v1", "Pod", "", name))
            await self.request("DELETE", pods, {"gracePeriodSeconds": 0})
            await self.delete(space)

    async def until(
        self, resource: Json, holds: Callable[[Json], bool], within_s: float = 120.0
    ) -> Json:
        """Wait until something holds of an object, and give the object."""
        last_state: list[Json] = []

        def holds_now(state: Json | None) -> bool:
            last_state[:] = [state] if state is not None else []
            return state is not None and holds(state)

        await self._wait(resource, holds_now, within_s)
        return last_state[0]

    async def until_gone(self, resource: Json, within_s: float = 120.0) -> None:
        """Wait until an object is no more, or another one has its name."""
        uid = resource["metadata"].get("uid")

        def gone(state: Json | None) -> bool:
            return state is None or uid not in {None, state["metadata"]["uid"]}

        await self._wait(resource, gone, within_s)

    async def _wait(
        self, resource: Json, holds: Callable[[Json | None], bool], within_s: float
    ) -> None:
        last: Json | None = None
        try:
            async with (
                asyncio.timeout(within_s),
                aclosing(self.states(resource)) as all_,
            ):
                async for last in all_:
                    if holds(last):
                        return
        except TimeoutError:
            told = f"{path_of(resource)}: not as awaited after {within_s:g} s"
            raise AssertionError(f"{told}: {json.dumps(last)}") from None

    async def states(self, resource: Json) -> AsyncGenerator[Json | None]:
        """Give each state of an object from now on; None: it is not there."""
        name, path = resource["metadata"]["name"], path_of(_unnamed(resource))
        select = {"fieldSelector": f"metadata.name={name}"}
        what = {"apiVersion": resource["apiVersion"], "kind": resource["kind"]}
        while True:
            try:
                listed = await self.request("GET", path, **select)
                yield {**what, **listed["items"][0]} if listed["items"] else None
                version = listed["metadata"]["resourceVersion"]
                async with aclosing(self.watch(path, version, **select)) as events:
                    async for event in events:
                        gone = event["type"] == "DELETED"
                        yield None if gone else event["object"]
            except (aiohttp.ClientError, RefusedError) as error:
                if isinstance(error, RefusedError) and error.status in {401, 403}:
                    raise
                await asyncio.sleep(0.1)


def named(api_version: str, kind: str, name: str, namespace: str = "") -> Json:
    """Name an object that may exist."""
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def path_of(resource: Mapping[str, Any], subresource: str = "") -> str:
    """Find the path of an object, or of its collection if it has no name."""
    version, kind, meta = (
        resource["apiVersion"],
        resource["kind"],
        resource["metadata"],
    )
    plural = kind.lower()
    if plural.endswith("y"):
        plural = plural.removesuffix("y") + "ie"
    elif plural.endswith("parameters"):
        plural = plural.removesuffix("s")  # is its own plural
    elif plural.endswith("s"):
        plural += "e"
    parts = ["api" if "/" not in version else "apis", version]
    if meta.get("namespace"):
        parts += ["namespaces", meta["namespace"]]
    parts += [f"{plural}s", meta.get("name", ""), subresource]
    return "/" + "/".join(part for part in parts if part)


def _unnamed(resource: Json) -> Json:
    return {**resource, "metadata": {**resource["metadata"], "name": ""}}


def as_json(body: object) -> bytes:
    """Write a body as JSON."""
    return json.dumps(body).encode()


def as_object(raw: bytes) -> Json:
    """Read an answer; what is no JSON is its message."""
    try:
        parsed: Json = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace")}
    return parsed
