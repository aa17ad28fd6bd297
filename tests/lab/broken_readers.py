"""The readers of every service and of the command line, each handed something broken.

A reader draws what it reads from types, breaks it, and reads it in the process of the
test, with the functions that the services call. It returns nothing; what it raises was
not foreseen, and a mistake of ours behind the frame of refusals counts as one
(`catch_mistakes`).
"""

from __future__ import annotations

import asyncio
import base64
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import pytest
import zstandard

from authcallout.errors import CalloutError
from authcallout.login import read_login, read_token
from contracts.codec import encode
from contracts.device import ResourceSlice
from contracts.errors import ContractsError
from contracts.ids import ClaimRef, ClaimUID, ClusterName, GangUID, Namespace, NodeName
from contracts.kubernetes.decode import decode_object
from contracts.messages import SubmitGang
from contracts.topics import (
    FENCE,
    GANG_TOPICS,
    HEALTH,
    INVENTORIES,
    SOLVES,
    STATE,
    TOPICS,
    Topic,
)
from contracts.workload import Node
from moorings.cli.documents import read_gangs, read_objects, read_state
from moorings.cli.main import EXPECTED_ERRORS
from moorings.console import following
from moorings.console.model import ConsoleModel
from moorings.console.what_if import WHAT_IF
from moorings.lint.lint import lint
from moorings.manifests import parse_documents, read_gang
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.lines import plan_lines
from moorings.views.inventory import view_devices
from nodeagent.errors import NodeAgentError, TornRecordError
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.prepare.cdi_files import CdiFiles
from nodeagent.prepare.parameters import DeviceParameters, merge
from nodeagent.prepare.prepared import PreparedClaim, decode_record
from nodeagent.sources.command.answer import AnsweredDevice, read_answer
from nodeagent.sources.fleet import FaultsFile, Fleet, read_faults, read_fleet
from nodeagent.sources.source_file import SourcesFile, read_sources
from publisher.cluster.gang_bus import GangBus
from publisher.gangs.view import View
from publisher.kube.changes import Change, ChangePage
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.eviction_budget import EvictionBudget
from runtime.bus.reader import _read_fetched
from runtime.errors import MessageError, ServiceError
from runtime.kube.answers import decode_answer
from runtime.kube.api import ObjectPage
from runtime.kube.errors import KubernetesError
from runtime.kube.kinds import key_of
from runtime.kube.lenient import ALTERED
from runtime.refusals import Refusals
from runtime.wire import ENCODING, Fetched, Incoming, unpack
from solver.cel.evaluator import SelectorEvaluator
from solver.service.intake import snapshot_message
from solver.snapshot.snapshot import Snapshot, apply
from tests.draw.broken import break_json
from tests.draw.samples import UID, sample, sample_object
from tests.lab.heard_bus import HeardBus
from tests.lab.publisher_readers import KINDS, NAMESPACED, Readers

CLUSTER = ClusterName("local")
NODE = NodeName("node-1")
NAMES = {
    "cluster": CLUSTER,
    "node": NODE,
    "namespace": "team",
    "uid": UID,
    "kind": "Pod",
    "key": "evil/bad",
    "name": "bad",
    "id": "solve",
}
"""In subjects, and in what is said on them."""
_ODD_SUBJECTS = (
    "inv.v1.local",
    "dec.v1.a.b.c.d",
    "state.v2.x.y.z",
    "=",
    "state.v1.=.=FF.>",
)


@contextmanager
def catch_mistakes(found: list[str]) -> Iterator[None]:
    """Note what the frame of refusals calls a mistake of ours while the block runs."""

    def show(_: Refusals, subject: str, error: Exception) -> None:
        found.append(f"{subject[:80]}: {error!r:.300} {_place_of(error)}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Refusals, "show_mistake", show)
        yield


def _place_of(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return " < ".join(f"{frame.filename}:{frame.lineno}" for frame in frames)


# --- what is handed over --------------------------------------------------------------


def any_object(draw: Random) -> dict[str, Any]:
    """Draw an object of a kind that is followed."""
    kind = draw.choice(list(KINDS))
    return sample_object(kind, KINDS[kind], draw)


def any_message(draw: Random) -> tuple[Topic[Any], Any]:
    """Draw a message, and the topic that it belongs to."""
    topic = draw.choice(TOPICS)
    said = sample(topic.codec.kind, draw, **_said_names(topic))
    if topic is STATE:
        raw = any_object(draw)
        kind = raw["kind"]
        is_in = any(each.__name__ == kind for each in NAMESPACED)
        said |= {"kind": kind, "key": "evil/bad" if is_in else "bad"}
        if "object" in said:
            said["object"] = raw
    if "gang" in said and isinstance(said["gang"], dict) and "uid" in said:
        named = {**said["gang"].get("metadata", {}), "name": "g", "namespace": "team"}
        said["gang"]["metadata"] = named
        if "duration" in said["gang"].get("spec", {}):
            said["gang"]["spec"]["duration"] = "1h"
    return topic, said


def _said_names(topic: Topic[Any]) -> dict[str, str]:
    return {**{name: NAMES[name] for name in topic.names}, "solve": NAMES["id"]}


class BrokenMessage:
    """What travels, broken or on a wrong subject."""

    def __init__(self, draw: Random) -> None:
        self.topic, said = any_message(draw)
        names = [str(said.get(name, NAMES[name])) for name in self.topic.names]
        self.names = tuple(names)
        self.subject = self.topic.subject(*names)
        self.data = break_json(said, draw, lambda: any_message(draw)[1])
        if draw.random() < 0.1:
            self.subject = draw.choice(
                (*_ODD_SUBJECTS, draw.choice(TOPICS).any_subject, f"{self.subject}.x")
            )
        self.headers: dict[str, str] = {}
        match draw.randrange(12):
            case 0:
                self.headers = {ENCODING: draw.choice(("zstd", "gzip", "\u202e"))}
            case 1:
                self.headers = {ENCODING: "zstd", "traceparent": "\0" * 300}
                self.data = zstandard.ZstdCompressor().compress(self.data)
            case 2:
                self.headers = {ENCODING: "zstd"}
                self.data = zstandard.ZstdCompressor().compress(bytes(64 << 20))
            case _:
                pass  # as most travel

    def receive(self, user: str) -> tuple[Incoming[Any], ...]:
        """Read it as a service does: nothing, where it is refused or another's."""
        try:
            received = unpack(self.subject, self.data, self.headers, 7, 1.0)
        except MessageError:
            return ()
        fetched = Fetched(messages=(received,), synced=True)
        topics = {topic.entity: topic for topic in TOPICS if user in topic.receivers}
        if received.subject.partition(".")[0] not in topics:
            return ()  # a reader has the subjects of its topics alone
        return _read_fetched(fetched, topics, Refusals()).messages


# --- the bus --------------------------------------------------------------------------


def read_as_solver(draw: Random, _: Path) -> None:
    """Take it into the Snapshot; what is refused changes nothing."""
    snapshot, refusals = Snapshot(), Refusals()
    for incoming in BrokenMessage(draw).receive("solver"):
        with refusals.guard(incoming):
            told = incoming.topic not in (SOLVES, FENCE)  # read for their own sake
            message = snapshot_message(incoming) if told else None
            if message is not None:
                apply(snapshot, message, sequence=7)


def read_as_console(draw: Random, _: Path) -> None:
    """Take it into the model, and show all of it."""
    model, refusals = ConsoleModel(CLUSTER), Refusals()
    for incoming in BrokenMessage(draw).receive("viewer"):
        with refusals.guard(incoming):
            if incoming.topic in following.TOPICS:
                model.take(incoming, 1.0)
    shown = (model.update(2.0), model.whole(), list(view_devices(model.known)))
    msgspec.json.encode(shown, enc_hook=str)
    assert model.held is not None
    list(model.stories)


def read_as_publisher(draw: Random, _: Path) -> None:
    """Take what is said of gangs and of nodes."""
    broken = BrokenMessage(draw)
    if not broken.receive("publisher"):
        return
    heard = cast("Any", HeardBus([(broken.topic, broken.names, broken.data)]))
    asyncio.run(_hear(heard, broken.topic))


async def _hear(heard: Any, topic: Topic[Any]) -> None:
    async def ignore(_: object) -> None: ...

    stop = asyncio.Event()
    if topic in (INVENTORIES, HEALTH):
        announced = AnnouncedPools(lambda *_: True, EvictionBudget(100.0))
        limits = AnnouncementLimits(worst_effect="NoExecute")
        reading = Announcements(
            CLUSTER, heard, announced, limits, lambda *_: None
        ).tasks()
        await reading["inventories" if topic is INVENTORIES else "health"](stop)
        announced.admit_evictions(0.0)
    elif topic in GANG_TOPICS:
        bus, read = GangBus(CLUSTER, heard, ignore, View().groups), asyncio.Event()
        read.set()
        await asyncio.gather(*(task(stop) for task in bus.tasks(read).values()))


# --- the API server -------------------------------------------------------------------


def read_objects_as_publisher(draw: Random, _: Path) -> None:
    """List it beside another, and hand it over to each who follows its kind."""
    kind = draw.choice(list(KINDS))
    raw = sample_object(kind, KINDS[kind], draw)
    broken = break_json(raw, draw, lambda: any_object(draw))
    page = _listed(kind.__name__, KINDS[kind], broken)
    readers = Readers()
    for item in page:
        change = Change(kind.__name__, key_of(item), item)
        asyncio.run(
            readers.hand_over(kind.__name__, ChangePage((change,), synced=True))
        )
    for group in sorted(readers.observer.view.groups()):
        if not readers.observer.find_unreadable(group):
            readers.plan(group)


def _listed(kind: str, version: str, broken: bytes) -> list[dict[str, Any]]:
    """Read an answer of the API server; it gives each object its name and version."""
    body = b'{"metadata":{"resourceVersion":"1"},"items":[%b]}' % broken
    try:
        page = decode_answer(
            "list", msgspec.json.Decoder(ObjectPage), body, lambda p: p.items or ()
        )
    except KubernetesError:
        return []
    found = []
    for item in page.items or ():
        metadata = item.get("metadata")
        known = metadata if isinstance(metadata, dict) else {}
        known |= {"name": "bad", "uid": UID, "resourceVersion": "7"}
        known["namespace"] = "evil"
        header = {"apiVersion": version, "kind": kind, "metadata": known}
        served = {"spec": {}, **item, **header}
        if _is_of_its_schema(served):
            found.append(served)
    return found


def _is_of_its_schema(raw: dict[str, Any]) -> bool:
    """True if an API server could hold an object: fields of its kind have their types.

    And those that are served whatever they say are there.
    """
    try:
        value = decode_object(raw).value
    except ContractsError:
        # Of what has parameters of drivers, anything may be cut out of these.
        has_parameters = raw["kind"] in ("ResourceClaim", "DeviceClass")
        return ALTERED in raw and has_parameters and isinstance(raw["spec"], dict)
    spec, status = raw["spec"], raw.get("status") or {}
    if isinstance(value, ResourceSlice):
        return {"driver", "pool"} <= set(spec) and "name" in spec["pool"]
    if isinstance(value, Node):
        is_whole = isinstance(status, dict)
        conditions = (is_whole and status.get("conditions")) or ()
        return is_whole and all(
            isinstance(each, dict) and {"type", "status"} <= set(each)
            for each in conditions
        )
    return isinstance(spec, dict)


# --- the agent ------------------------------------------------------------------------

PARAMETERS = "moorings.dev/v1alpha1"


def read_as_agent(draw: Random, folder: Path) -> None:
    """Read what programs, files, claims and its own records say."""
    with suppress(NodeAgentError, ContractsError, ServiceError, KubernetesError):
        draw.choice(_OF_AGENT)(draw, folder)


def _read_answer(draw: Random, _: Path) -> None:
    answer = {"devices": [sample(AnsweredDevice, draw) for _ in range(2)]}
    read_answer(_broken(answer, draw), {})


def _read_settings(draw: Random, _: Path) -> None:
    kind, read = draw.choice(
        (
            (SourcesFile, lambda text: read_sources(text, "f", NODE)),
            (Fleet, lambda text: read_fleet(text, "f")),
            (FaultsFile, lambda text: read_faults(text, "f")),
        )
    )
    with suppress(UnicodeDecodeError):  # as `read_text` does
        read(_broken(sample(kind, draw), draw).decode())


def _read_record(draw: Random, folder: Path) -> None:
    broken = _broken(sample(PreparedClaim, draw), draw)
    with suppress(TornRecordError):
        decode_record(broken)
    cdi = CdiFiles(folder / "cdi", cast("Any", "gpu.example.com"))
    path = cdi._path(ClaimUID(UID))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(broken)
    cdi.read_record(ClaimUID(UID))


def _read_claim(draw: Random, _: Path) -> None:
    (kind,) = (kind for kind in KINDS if kind.__name__ == "ResourceClaim")
    raw = sample_object(kind, KINDS[kind], draw)
    body = _broken(raw, draw)

    class Api:
        async def fetch_served_kinds(self) -> Any:
            return type("Served", (), {"resource_claim": None})

        async def get(self, _: object, __: str) -> dict[str, Any]:
            for item in _listed(kind.__name__, KINDS[kind], body):
                return item
            raise AssertionError

    if not _listed(kind.__name__, KINDS[kind], body):
        return
    asked = ClaimRef(namespace=Namespace("evil"), name="bad", uid=ClaimUID(UID))
    claim = asyncio.run(ClaimReader(cast("Any", Api())).read(asked))
    if claim.allocation is not None:
        for result in claim.allocation.devices.results:
            configs = claim.allocation.devices.config
            merge(configs, result.driver, result.request)


def _read_parameters(draw: Random, _: Path) -> None:
    broken = _broken(sample(DeviceParameters, draw), draw)
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = msgspec.json.decode(broken)
        opaque = {"driver": "d", "parameters": said}
        config = type(
            "C", (), {"requests": (), "source": "FromClaim", "opaque": opaque}
        )
        merge((cast("Any", config),), cast("Any", "d"), "r")


_OF_AGENT: tuple[Callable[[Random, Path], None], ...] = (
    _read_answer,
    _read_settings,
    _read_record,
    _read_claim,
    _read_parameters,
)


def _broken(value: Any, draw: Random) -> bytes:
    return break_json(value, draw, lambda: any_object(draw))


# --- the command line and the console's questions -------------------------------------


class CommandLine:
    """The commands that read files, with one sandbox for all of them."""

    def __init__(self, evaluator: SelectorEvaluator) -> None:
        self._evaluator = evaluator

    def read_as_cli(self, draw: Random, folder: Path) -> None:
        """Lint it, plan it, submit it, or read it as a cluster's state."""
        file = folder / draw.choice(("f.yaml", "f.json"))
        file.write_bytes(_broken(self._document(draw), draw))
        names = [str(file)]
        with suppress(*EXPECTED_ERRORS):
            match draw.choice(("lint", "plan", "lines", "submit", "state", "console")):
                case "lint":
                    read = read_objects(names, as_stored=True)
                    encode(lint(read.objects, PlanOptions().features, self._evaluator))
                case "plan":
                    planner = Planner(self._evaluator)
                    encode(planner.plan(read_objects(names).objects, PlanOptions()))
                case "lines":
                    case = {"objects": [self._document(draw)], "id": 1}
                    lines = _broken(case, draw).split(b"\n")
                    list(plan_lines(lines, Planner(self._evaluator)))
                case "submit":
                    for _, gang in read_gangs(names):
                        _submit(gang)
                case "state":
                    read_state(names)
                case "console":
                    self._ask_console(file.read_bytes(), draw)

    def _document(self, draw: Random) -> Any:
        items = [any_object(draw) for _ in range(draw.choice((1, 1, 3)))]
        if len(items) == 1:
            return items[0]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _ask_console(self, body: bytes, draw: Random) -> None:
        with suppress(ContractsError):
            WHAT_IF.decode(_broken(sample(WHAT_IF.kind, draw), draw))
        text = body.decode(errors="replace")
        for source, raw in parse_documents("manifest", text):
            _submit(read_gang(source, raw)[1])


def _submit(gang: Any) -> None:
    with suppress(ValueError):  # as the client does, who says why
        encode(SubmitGang(cluster=CLUSTER, uid=GangUID(UID), gang=gang))


# --- who connects ---------------------------------------------------------------------


def read_as_callout(draw: Random, _: Path) -> None:
    """Read the words of a user and its token."""
    claims = {"aud": ["a"], "exp": 2_000_000_000, "kubernetes.io": {}}
    status = {"user": {"username": "u", "groups": ["g"], "extra": {"k": ["v"]}}}
    broken = break_json(claims, draw, lambda: status)
    token = f"a.{base64.urlsafe_b64encode(broken).decode()}.b"
    said = break_json(status, draw, lambda: claims).decode(errors="replace")
    words = said[: draw.choice((20, 3_000))]
    with suppress(CalloutError):
        read_token(draw.choice((token, said)), "a", 1.0)
    with suppress(CalloutError):
        read_login(f"{draw.choice(('nodeagent', 'platform', ''))} {words}")


def readers(evaluator: SelectorEvaluator) -> tuple[Callable[[Random, Path], None], ...]:
    """Return every reader; `evaluator` is that of the command line."""
    return (
        read_as_solver,
        read_as_console,
        read_as_publisher,
        read_objects_as_publisher,
        read_as_agent,
        CommandLine(evaluator).read_as_cli,
        read_as_callout,
    )
