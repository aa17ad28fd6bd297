"""Who has nothing but the AsyncAPI document submits a gang and follows what is decided.

The world around it is made as the other tests make it; what an application does is read
from docs/asyncapi.yaml alone.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from jsonschema import Draft202012Validator
from nats.aio.client import Client as NatsClient

from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from runtime.bus.bus import Bus
from tests.builders import devices, pool
from tests.lab.nats_server import LabServer
from tests.lab.npm import installed
from tests.lab.services import CLUSTER, announce, observe_class, running, solver

ROOT = Path(__file__).parents[2]
PARSER = ROOT / "tests" / "lab" / "asyncapi"
UID = "6b1f3c1e-7d0c-4a55-9a3e-0c2b8f6f3c11"
GANG = {
    "metadata": {"name": "train", "namespace": "team-a", "uid": UID},
    "spec": {
        "members": [
            {
                "name": "worker",
                "count": 2,
                "claims": [
                    {
                        "name": "gpus",
                        "spec": {
                            "devices": {
                                "requests": [
                                    {
                                        "name": "gpu",
                                        "exactly": {
                                            "deviceClassName": "gpu.example.com",
                                            "count": 2,
                                        },
                                    }
                                ]
                            }
                        },
                    }
                ],
            }
        ]
    },
}


class Document:
    """The document, as an application's author reads it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def subject(self, channel: str, **names: str) -> str:
        """Fill in the names of a channel; those not given become wildcards."""
        address = self._document["channels"][channel]["address"]
        return re.sub(r"{(\w+)}", lambda name: names.get(name[1], "*"), address)

    def check(self, channel: str, payload: dict[str, Any]) -> None:
        """Require that a payload is a message of the channel, by its schema."""
        messages = self._document["channels"][channel]["messages"]
        assert payload["type"] in messages
        schema = {"$ref": f"#/components/schemas/{payload['type']}", **self._document}
        Draft202012Validator(schema).validate(payload)

    def check_headers(self, message: str, headers: dict[str, str]) -> None:
        """Require that headers are those of a message, all that it may have."""
        schema = self._document["components"]["messages"][message]["headers"]
        Draft202012Validator(schema).validate(headers)
        assert schema["properties"].keys() <= headers.keys()


@pytest.fixture
def document() -> Document:
    """Return the document of this version."""
    return Document(yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text()))


@pytest.fixture
async def application(nats_server: LabServer) -> AsyncIterator[NatsClient]:
    """Return a plain connection of nats-py."""
    connection = await nats.connect(nats_server.url)
    yield connection
    await connection.close()


@pytest.fixture
async def world(bus: Bus) -> Bus:
    """Two nodes with four devices each, and their class."""
    for node in map(NodeName, "ab"):
        pools = (pool(*devices(4), name=node),)
        await announce(bus, DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools))
    await observe_class(bus)
    return bus


async def submit(document: Document, application: NatsClient) -> None:
    """Submit the gang; the server acknowledges that it is stored."""
    submission = {"type": "SubmitGang", "cluster": CLUSTER, "uid": UID, "gang": GANG}
    document.check("submit", submission)
    subject = document.subject("submit", cluster=CLUSTER, namespace="team-a", uid=UID)
    answer = await application.request(subject, json.dumps(submission).encode())
    assert json.loads(answer.data)["stream"] == "SUBMIT"


@pytest.fixture(scope="module")
def parser() -> Path:
    """Install AsyncAPI's parser, once for each version of it; gives its folder."""
    return installed(PARSER / "package.json")


@pytest.mark.soak
def test_the_parser_of_asyncapi_takes_the_document(parser: Path) -> None:
    """Without a word of worse than information: severities 0 and 1 are worse."""
    script, document = PARSER / "parse.cjs", ROOT / "docs" / "asyncapi.yaml"
    parsed = subprocess.run(
        ["node", str(script), str(document)],
        cwd=parser,
        capture_output=True,
        text=True,
        check=False,
    )
    assert parsed.returncode == 0, parsed.stdout + parsed.stderr
    *said, channels = parsed.stdout.splitlines()
    assert not [line for line in said if line.startswith(("0", "1"))]
    assert channels == "20 channels"


@pytest.mark.usefixtures("world")
async def test_a_gang_is_submitted_and_decided_by_the_document_alone(
    document: Document, application: NatsClient, nats_server: LabServer, tmp_path: Path
) -> None:
    """Subjects, payloads, headers and answers are those that it names."""
    decisions = await application.subscribe(
        document.subject("evt.dec", cluster=CLUSTER)
    )
    events = {"SOLVER_CLOUD_EVENTS": "true"}
    async with running(solver(nats_server.url, tmp_path, **events)):
        await submit(document, application)
        message = await decisions.next_msg(timeout=60)
    decision = json.loads(message.data)
    document.check("evt.dec", decision)
    headers = message.headers or {}
    document.check_headers("GangAllocated", headers)
    assert headers["ce-subject"] == f"team-a/{UID}"
    assert decision["type"] == "GangAllocated"
    assert [member["index"] for member in decision["members"]] == [0, 1]
