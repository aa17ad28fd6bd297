"""The AsyncAPI document of the bus says what the tables and the Structs say."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from jsonschema import Draft202012Validator

from contracts.asyncapi import describe, messages_of
from contracts.codec import to_builtins
from contracts.pages import PAGE_MESSAGES, PageHead, PageMessage, write_page
from contracts.topics import BLOBS, DECISIONS, INVENTORIES, TOPICS
from runtime.bus.permissions import RELAYS, SUBSCRIBERS, permissions_of
from tests.builders.decisions import gang_allocated, submission

DOCUMENT = Path(__file__).parents[3] / "docs" / "asyncapi.yaml"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return describe(version("moorings"))


def test_the_document_in_docs_is_the_one_of_this_version(
    document: dict[str, Any],
) -> None:
    """Else: `moorings bus describe -o yaml > docs/asyncapi.yaml`."""
    assert yaml.safe_load(DOCUMENT.read_text()) == to_builtins(document)


def test_each_family_of_subjects_has_a_channel(document: dict[str, Any]) -> None:
    """With a parameter for each name; decisions and ends of batches twice, as news.

    Two more are for pages.
    """
    channels = document["channels"]
    for family in (*TOPICS, BLOBS):
        channel = channels[family.entity]
        named = family.pattern.replace("<", "{").replace(">", "}")
        assert channel["address"] == named
        assert tuple(channel["parameters"]) == family.names
    assert channels["evt.dec"]["address"] == f"evt.{channels['dec']['address']}"
    assert len(channels) == len(TOPICS) + 1 + 2 + 2


def test_who_sends_and_who_receives_is_said_of_services(
    document: dict[str, Any],
) -> None:
    """What platforms send, services receive."""
    operations = document["operations"]
    assert operations["send.dec"]["x-users"] == ["solver"]
    assert operations["receive.submit"]["x-users"] == ["solver", "publisher"]
    assert operations["send.submit"]["x-users"] == ["publisher"]
    assert "receive.dec" not in operations


def test_pages_are_asked_for_as_relays_have_it(document: dict[str, Any]) -> None:
    """On subjects that a user may use for the streams that it may read."""
    asked = document["channels"]["page.request"]
    for user in SUBSCRIBERS:
        for stream in asked["parameters"]["stream"]["enum"]:
            subject = asked["address"].format(stream=stream)
            is_read = any(t.stream == stream and user in t.receivers for t in TOPICS)
            assert (subject in permissions_of(user).publish) == is_read
    operation = document["operations"]["receive.page.request"]
    assert tuple(operation["x-users"]) == RELAYS
    reply = operation["reply"]["channel"]["$ref"].removeprefix("#/channels/")
    assert document["channels"][reply]["address"] is None
    schema = document["components"]["schemas"]["PageRequest"]
    assert f"{PAGE_MESSAGES} at most" in schema["description"]


def test_a_page_is_as_its_schema_has_it(document: dict[str, Any]) -> None:
    message = PageMessage(sequence=1, subject="a", time="t", bytes=2, headers={"a": ""})
    line, _, _ = write_page(PageHead(messages=(message,), pending=0), []).partition(
        b"\n"
    )
    schema = to_builtins({"$ref": "#/components/schemas/PageHead", **document})

    Draft202012Validator(schema).validate(msgspec.json.decode(line))


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    """Schemas, messages and channels alike."""

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            here = [value["$ref"]] if "$ref" in value else []
            return here + [r for item in value.values() for r in references(item)]
        if isinstance(value, list):
            return [r for item in value for r in references(item)]
        return []

    found = references(document)
    assert found
    for reference in found:
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]


@pytest.mark.parametrize("message", [submission(), gang_allocated()])
def test_messages_are_valid_by_their_schemas(
    document: dict[str, Any], message: Any
) -> None:
    """As they are written."""
    name = type(message).__name__
    schema = to_builtins({"$ref": f"#/components/schemas/{name}", **document})
    validator = Draft202012Validator(schema)
    validator.validate(to_builtins(message))
    assert not validator.is_valid({**to_builtins(message), "cluster": 5})
    assert not validator.is_valid({"type": name})


def test_compressed_messages_say_so(document: dict[str, Any]) -> None:
    """By a header."""
    messages = document["components"]["messages"]
    (inventory,) = messages_of(INVENTORIES)
    assert "Content-Encoding" in messages[inventory.__name__]["headers"]["properties"]
    for kind in messages_of(DECISIONS):
        headers = messages[kind.__name__]["headers"]
        assert "Content-Encoding" not in headers["properties"]
        assert "required" not in headers
