"""The HTTP API of the console's page.

Each handler turns a request into one answer of JSON. Who may ask is settled before
(`server.py`); what cannot be answered is an error of ours, which becomes a status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from contracts.errors import ContractsError
from contracts.ids import GangUID, Namespace, NodeName
from contracts.messages import CancelGang, CommandMessage, ReleaseGang
from moorings.bus_client import Client
from moorings.console.following import Following
from moorings.console.gangs import tell_story
from moorings.console.solving import Solving
from moorings.console.what_if import WHAT_IF
from moorings.errors import BadInputError, UnknownNameError
from moorings.manifests import parse_documents, read_gang
from moorings.stories import GangStory, name_story
from moorings.views.events import view_event
from moorings.views.inventory import view_devices
from moorings.views.queues import view_queues
from moorings.views.waiting import view_wait

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_OF_DEVICES = (
    "driver",
    "pool",
    "name",
    "states",
    "health",
    "healthSince",
    "healthMessage",
    "holders",
    "taints",
    "why",
)


class ConsoleApi:
    """The questions of a page, answered from what is followed and by solving."""

    def __init__(
        self, client: Client, following: Following, changing: Client | None
    ) -> None:
        self._client = client
        self._following = following
        self._changing = changing
        """Client for changes; None: changes are not allowed."""
        self.solving = Solving(client)

    @property
    def questions(self) -> Mapping[tuple[str, str], Handler]:
        """The handlers that change nothing, by method and path."""
        return {
            ("GET", "/api/gangs/{id:.+}"): self.tell_gang,
            ("GET", "/api/nodes/{name}"): self.show_node,
            ("GET", "/api/queues"): self.list_queues,
            ("GET", "/api/solves/{id}"): self.show_solve,
            ("POST", "/api/solves/{id}/replay"): self.replay,
            ("POST", "/api/solves/{id}/what-if"): self.ask_what_if,
            ("POST", "/api/help/{namespace}/{uid}"): self.find_help,
        }

    @property
    def changes(self) -> Mapping[tuple[str, str], Handler]:
        """The handlers that change something, by method and path."""
        return {
            ("POST", "/api/change/submit"): self.submit,
            ("POST", "/api/change/cancel/{namespace}/{uid}"): self.cancel,
            ("POST", "/api/change/release/{namespace}/{uid}"): self.release,
        }

    # --- looking ----------------------------------------------------------------------

    async def tell_gang(self, request: web.Request) -> web.Response:
        """Tell one gang's story."""
        story = self._find_story(request.match_info["id"])
        model = self._following.model
        said = await self._client.fetch_events(story.records)
        events = filter(None, map(view_event, said))
        written = await self._client.fetch_written(story.records)
        told = tell_story(story, events, written, model.held)
        known = model.known
        everybody = known.snapshot.gangs.values()
        by_uid = {record.uid: record for record in story.records}
        for explanation in told["explanations"]:
            if (record := by_uid.get(explanation["uid"])) is not None:
                explanation.update(view_wait(record, everybody, known))
        return _respond(told)

    def _find_story(self, name: str) -> GangStory:
        for story in self._following.model.stories:
            if name_story(story) == name:
                return story
        raise UnknownNameError("gang", name)

    async def show_node(self, request: web.Request) -> web.Response:
        """Show a node: its labels and taints, and who holds which device."""
        name = NodeName(request.match_info["name"])
        model = self._following.model
        record = model.picture.records.get(name)
        if record is None:
            raise UnknownNameError("node", name)
        known = model.known
        part = known.snapshot.inventory.pages.get(name, f"node/{name}")
        devices = [
            {key: row[key] for key in _OF_DEVICES}
            | {
                "attributes": msgspec.to_builtins(row["attributes"]),
                "capacity": msgspec.to_builtins(row["capacity"], enc_hook=str),
            }
            for row in view_devices(known, name)
        ]
        node = msgspec.to_builtins(part) if part is not None else {}
        return _respond({"record": record, "node": node, "devices": devices})

    async def list_queues(self, _: web.Request) -> web.Response:
        """List the ClusterQueues, with quotas and gangs."""
        return _respond(view_queues(self._following.model.known.snapshot))

    async def show_solve(self, request: web.Request) -> web.Response:
        """Show a recorded solve."""
        model = self._following.model
        return _respond(await self.solving.show(model, request.match_info["id"]))

    # --- solving again ----------------------------------------------------------------

    async def replay(self, request: web.Request) -> web.Response:
        """Solve again what was recorded, and compare bytes."""
        model = self._following.model
        return _respond(await self.solving.replay(model, request.match_info["id"]))

    async def ask_what_if(self, request: web.Request) -> web.Response:
        """Solve a recorded question in another way."""
        what_if = WHAT_IF.decode(await request.read())
        model, solve = self._following.model, request.match_info["id"]
        return _respond(await self.solving.ask(model, solve, what_if))

    async def find_help(self, request: web.Request) -> web.Response:
        """Try what would help a gang that waits."""
        namespace, uid = request.match_info["namespace"], request.match_info["uid"]
        model = self._following.model
        return _respond(await self.solving.find_help(model, namespace, uid))

    # --- changing ---------------------------------------------------------------------

    async def submit(self, request: web.Request) -> web.Response:
        """Submit the Gangs of a manifest; all must be valid before any is sent."""
        text = await request.text()
        raws = parse_documents("manifest", text)
        gangs = [read_gang(source, raw)[1] for source, raw in raws]
        if not gangs:
            raise BadInputError("manifest", "holds no Gang")
        uids = [(await self._sender.submit(gang))[0] for gang in gangs]
        return _respond({"uids": uids})

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a gang."""
        return await self._send_command(request, CancelGang)

    async def release(self, request: web.Request) -> web.Response:
        """Release a gang."""
        return await self._send_command(request, ReleaseGang)

    async def _send_command(
        self, request: web.Request, kind: type[CancelGang | ReleaseGang]
    ) -> web.Response:
        uid = GangUID(request.match_info["uid"])
        namespace = Namespace(request.match_info["namespace"])
        message: CommandMessage = kind(
            cluster=self._client.cluster, namespace=namespace, uid=uid
        )
        gang = self._following.model.known.snapshot.gangs.get(message.key)
        if gang is None or gang.is_over:
            raise UnknownNameError("living gang", f"{namespace}/{uid}")
        await self._sender.send_command(message)
        return _respond({"uid": uid})

    @property
    def _sender(self) -> Client:
        if self._changing is None:
            raise BadInputError("console", "this console does not allow changes")
        return self._changing


def _respond(value: Any) -> web.Response:
    data = msgspec.json.encode(value, enc_hook=str)
    return web.Response(body=data, content_type="application/json")


def status_of(error: Exception) -> int:
    """Choose the status that says what is wrong with a request."""
    match error:
        case UnknownNameError():
            return 404
        case BadInputError() | ContractsError():
            return 400
        case _:
            return 502
