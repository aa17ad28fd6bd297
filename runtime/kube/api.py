"""The way to the API server: list, watch, get, create, patch, delete.

Objects are the JSON that is served, each in the version of its kind; one attempt a
call: whoever calls knows whether to try again. Knows nothing of what objects mean.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from runtime.kube.answers import ApiStatus, decode_answer, error_of_status
from runtime.kube.errors import UnavailableError
from runtime.kube.kinds import POD, VERSIONS, Kind, ServedKinds
from runtime.kube.protobuf import MEDIA_TYPE, extend
from runtime.kube.request_limit import RequestLimit
from runtime.kube.served import fetch_plurals, fetch_served_kinds
from runtime.kube.transport import Transport

IN_FLIGHT = 32
PAGE_SIZE = 500
_WATCH_S = 300
PUBLISHER = "moorings-publisher"

Json = dict[str, Any]
JsonPatch = Sequence[Json]


class _ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ObjectPage(Struct):
    """Some objects of a list, and how to go on."""

    metadata: _ListMetadata
    items: list[Json] | None = None

    @property
    def token(self) -> str:
        """To be given to `list_page` for the next page; empty: this is the last."""
        return self.metadata.continue_

    @property
    def resource_version(self) -> str:
        """Where a watch goes on."""
        return self.metadata.resource_version


class WatchEvent(Struct):
    """One line of a watch."""

    type: str
    """`ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`."""
    object: Json


_OBJECT: msgspec.json.Decoder[Json] = msgspec.json.Decoder(Json)
_PAGE = msgspec.json.Decoder(ObjectPage)
_EVENT = msgspec.json.Decoder(WatchEvent)


class KubernetesApi:
    """One cluster, seen through one pool of connections."""

    def __init__(self, transport: Transport, manager: str) -> None:
        self._transport = transport
        self._writing = {"fieldManager": manager, "fieldValidation": "Strict"}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kubeconfig: str = "",
        context: str = "",
        *,
        in_flight: int = IN_FLIGHT,
        manager: str = PUBLISHER,
        limit: RequestLimit | None = None,
    ) -> AsyncIterator[KubernetesApi]:
        """Prepare the way to a cluster; nothing is sent before the first call.

        `kubeconfig` is a path; empty: the service account of the pod we run in.
        `context` is one of its contexts; empty: the current one. At most `in_flight`
        requests run at once; watches are not counted. What is written is `manager`'s.
        `limit` says how many go a second, the start of a watch among them; None: any.

        Raises:
            ClusterError: the kubeconfig or the service account cannot be used.
        """
        way = (kubeconfig, context, in_flight, manager, limit)
        async with Transport.open(*way) as transport:
            yield cls(transport, manager)

    async def fetch_served_kinds(
        self, versions: tuple[str, ...] = VERSIONS
    ) -> ServedKinds:
        """Ask which versions of our kinds the cluster serves; the first counts.

        Raises:
            ClusterError: none that we know.
            ApiError: the API server does not say.
        """
        return await fetch_served_kinds(self._transport, versions)

    async def fetch_served(self, group: str) -> dict[str, frozenset[str]]:
        """Ask what a group serves: plurals by version; nothing if it is not there.

        Raises:
            ApiError: the API server does not say.
        """
        return await fetch_plurals(self._transport, group)

    async def read_text(self, path: str) -> str:
        """Read what is no object, such as `/metrics` or `/version`.

        Raises:
            ApiError: as its tree says.
        """
        body = await self._transport.call(f"read {path}", "GET", path, accept="*/*")
        return body.decode("utf-8", "replace")

    async def read_date(self) -> float:
        """Return the API server's time, in whole seconds since the epoch.

        Raises:
            ApiError: as its tree says.
        """
        return await self._transport.read_date("read the time", "/version")

    async def list_page(
        self,
        kind: Kind,
        token: str = "",
        *,
        namespace: str = "",
        field_selector: str = "",
    ) -> ObjectPage:
        """Read up to 500 objects of a kind, of one namespace or of all.

        Raises:
            GoneError: the token is too old; list from the start.
            ApiError: as its tree says.
        """
        what = f"list {kind.name}"
        body = await self._transport.call(
            what,
            "GET",
            kind.path(namespace),
            parameters=_drop_empty(
                {
                    "limit": str(PAGE_SIZE),
                    "continue": token,
                    "fieldSelector": field_selector,
                }
            ),
        )
        page = decode_answer(what, _PAGE, body, lambda page: page.items or ())
        # In lists the API server leaves out what is the same for all.
        for raw in page.items or ():
            raw.setdefault("apiVersion", kind.api_version)
            raw.setdefault("kind", kind.name)
        return page

    async def watch(
        self,
        kind: Kind,
        resource_version: str,
        *,
        field_selector: str = "",
    ) -> AsyncGenerator[tuple[WatchEvent, ...]]:
        """Yield what changes after `resource_version`, as many events as are there.

        An empty tuple says that the watch stands. It ends after some minutes, without
        an error: go on from the last object or bookmark.

        Raises:
            GoneError: that version is too old; list again.
            ApiError: as its tree says.
        """
        what = f"watch {kind.name}"
        parameters = _drop_empty(
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": resource_version,
                "timeoutSeconds": str(_WATCH_S),
                "fieldSelector": field_selector,
            }
        )
        stream = self._transport.stream(what, kind.path(), parameters=parameters)
        async with aclosing(stream) as batches:
            async for lines in batches:
                yield _decode_events(what, lines)

    async def get(self, kind: Kind, key: str) -> Json:
        """Read one object.

        Raises:
            NotFoundError: it does not exist.
            ApiError: as its tree says.
        """
        what = f"get {kind.name} {key}"
        body = await self._transport.call(what, "GET", kind.path_of(key))
        return _decode_object(what, body)

    async def create(self, kind: Kind, body: Json) -> Json:
        """Create an object in the namespace that it names.

        Raises:
            AlreadyExistsError: the name is taken.
            InvalidError: the object is refused; unknown fields are, too.
            ApiError: as its tree says.
        """
        metadata = body["metadata"]
        namespace = metadata.get("namespace", "")
        name = metadata.get("name") or metadata.get("generateName", "")
        what = f"create {kind.name} {name}"
        answer = await self._transport.call(
            what,
            "POST",
            kind.path(namespace),
            parameters=self._writing,
            body=msgspec.json.encode(body),
        )
        return _decode_object(what, answer)

    async def patch(
        self,
        kind: Kind,
        key: str,
        body: Json | JsonPatch,
        *,
        subresource: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Json:
        """Change an object and return it as it is then: a mapping is a merge patch.

        A sequence is a JSON patch. `uid` and `resource_version` are preconditions.

        Raises:
            ConflictError: the object is another one, or has changed.
            NotFoundError: it does not exist.
            InvalidError: the change is refused.
            ApiError: as its tree says.
        """
        what = f"patch {'/'.join(filter(None, (kind.name, subresource)))} {key}"
        expected = _drop_empty({"uid": uid, "resourceVersion": resource_version})
        if isinstance(body, Mapping):
            form = "merge-patch"
            metadata = {**(body.get("metadata") or {}), **expected}
            content: object = {**body, "metadata": metadata} if metadata else body
        else:
            form = "json-patch"
            # Not `test`: a test that fails is a 422 that does not say why.
            content = [
                {"op": "replace", "path": f"/metadata/{name}", "value": value}
                for name, value in expected.items()
            ] + list(body)
        answer = await self._transport.call(
            what,
            "PATCH",
            kind.path_of(key, subresource),
            parameters=self._writing,
            body=msgspec.json.encode(content),
            form=f"application/{form}+json",
        )
        return _decode_object(what, answer)

    async def extend(
        self, kind: Kind, key: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        """Add what a merge patch adds to a claim that no JSON can change.

        `protobuf` says which those are. `uid` and `resourceVersion` of its metadata are
        preconditions. Returns the object as it is then.

        Raises:
            ConflictError: the object is another one, or has changed.
            NotFoundError: it does not exist.
            InvalidError: the change is refused.
            ApiError: as its tree says.
        """
        what = f"update {'/'.join(filter(None, (kind.name, subresource)))} {key}"
        path = kind.path_of(key)
        before = await self._transport.call(what, "GET", path, accept=MEDIA_TYPE)
        try:
            body = extend(before, patch)
        except ValueError as error:
            raise UnavailableError(what, str(error)) from error
        answer = await self._transport.call(
            what,
            "PUT",
            kind.path_of(key, subresource),
            parameters=self._writing,
            body=body,
            form=MEDIA_TYPE,
        )
        return _decode_object(what, answer)

    async def apply(
        self, kind: Kind, key: str, body: Json, *, subresource: str = ""
    ) -> Json:
        """Set the fields of `body` and give up those of ours that it leaves out.

        Server-side apply: lists that are maps by key are merged, and what other
        managers wrote stays. A `metadata.uid` in the body is a precondition.

        Raises:
            ConflictError: the object is another one.
            NotFoundError: it does not exist, and is not to be created so.
            InvalidError: the object is refused.
            ApiError: as its tree says.
        """
        what = f"apply {'/'.join(filter(None, (kind.name, subresource)))} {key}"
        answer = await self._transport.call(
            what,
            "PATCH",
            kind.path_of(key, subresource),
            parameters={**self._writing, "force": "true"},
            body=msgspec.json.encode(body),
            form="application/apply-patch+yaml",
        )
        return _decode_object(what, answer)

    async def evict(self, key: str, *, uid: str) -> None:
        """Ask for the end of a pod, as far as disruption budgets let it go.

        Raises:
            ThrottledError: a budget does not, now.
            ConflictError: the pod is another one.
            NotFoundError: it does not exist.
            ApiError: as its tree says.
        """
        namespace, _, name = key.partition("/")
        eviction: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        await self._transport.call(
            f"evict Pod {key}",
            "POST",
            POD.path_of(key, "eviction"),
            body=msgspec.json.encode(eviction),
        )

    async def delete(
        self,
        kind: Kind,
        key: str,
        *,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        """Ask for the end of an object; finalizers may keep it for a while.

        Raises:
            ConflictError: the object is another one, or has changed.
            NotFoundError: it does not exist.
            ApiError: as its tree says.
        """
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": _drop_empty(
                {"uid": uid, "resourceVersion": resource_version}
            ),
        }
        await self._transport.call(
            f"delete {kind.name} {key}",
            "DELETE",
            kind.path_of(key),
            body=msgspec.json.encode(options),
        )


def _decode_object(what: str, body: bytes) -> Json:
    return decode_answer(what, _OBJECT, body, lambda raw: (raw,))


def _drop_empty(values: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is not asked for."""
    return {name: value for name, value in values.items() if value}


def _decode_events(what: str, lines: bytes) -> tuple[WatchEvent, ...]:
    """Read lines of a watch.

    Raises:
        ApiError: one of them is an error, or none that can be read.
    """
    try:
        events = _EVENT.decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # One of them cannot be read as it is; the others can.
        events = [
            decode_answer(what, _EVENT, line, lambda event: (event.object,))
            for line in lines.split(b"\n")
            if line
        ]
    for event in events:
        if event.type == "ERROR":
            status = msgspec.convert(event.object, ApiStatus, strict=False)
            raise error_of_status(what, status)
    return tuple(events)
