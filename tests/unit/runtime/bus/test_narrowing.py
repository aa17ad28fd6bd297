"""Rights of one node or namespace are among those of the role, and no wider."""

from __future__ import annotations

import pytest

from contracts.topics import TOPICS
from runtime.bus.narrowing import permissions_of_agent, permissions_of_platform
from runtime.bus.permissions import permissions_of
from runtime.users import NamespaceRights

ALL = NamespaceRights(namespace="team-a", submit=True, command=True, read=True)
EVERYWHERE = NamespaceRights(namespace=None, submit=True, command=True, read=True)


def _covers(pattern: str, subject: str) -> bool:
    """Whether the account imports a subject, or what ends with `>` in part."""
    if pattern.endswith(".>"):
        return subject.startswith(pattern.removesuffix(">"))
    wide, narrow = pattern.split("."), subject.removesuffix(".>").split(".")
    is_open = subject.endswith(".>")
    return (len(narrow) < len(wide) if is_open else len(narrow) == len(wide)) and all(
        one in ("*", other) for one, other in zip(wide, narrow, strict=False)
    )


def test_an_agent_sends_for_its_node_and_reads_what_is_said_of_it() -> None:
    allowed = permissions_of_agent("nodeagent node-1", "local", "node-1")
    sent = {s for s in allowed.publish if not s.startswith("JS.")}

    assert set(allowed.publish) - sent == {
        f"JS.CORE.API.DIRECT.GET.{stream}.{entity}.v1.local.node-1"
        for stream, entity in (
            ("INV", "inv"),
            ("HEALTH", "health"),
            ("HEALTH", "drift"),
            ("HB", "hb"),
        )
    }
    assert sent == {f"{e}.v1.local.node-1" for e in ("inv", "health", "hb", "drift")}
    assert allowed.subscribe == ("_INBOX.nodeagent=20node-1.>",)


@pytest.mark.parametrize("name", ["*", ">", "a.>", "a.*.b", "*.*", "a b", "é", "a\n"])
def test_no_name_becomes_a_wildcard(name: str) -> None:
    agent = permissions_of_agent(f"nodeagent {name}", "local", name)
    rights = [NamespaceRights(namespace=name, submit=True, command=True, read=True)]
    platform = permissions_of_platform(f"platform {name}", "local", rights)
    given = (*agent.publish, *agent.subscribe, *platform.publish, *platform.subscribe)
    own = [s for s in given if ".v1.local." in s or s.startswith("_INBOX.")]

    assert own
    for subject in own:
        tokens = subject.removesuffix(".>").split(".")
        assert not {"*", ">"} & set(tokens)
        assert all(token.isascii() and " " not in token for token in tokens)


def test_a_platform_uses_its_namespace_alone() -> None:
    allowed = permissions_of_platform("platform x", "local", [ALL])
    tokens = [s.split(".v1.local.")[-1] for s in allowed.publish]

    assert set(tokens) == {"team-a.>"}
    assert {s for s in allowed.subscribe if "INBOX" not in s} == {
        "evt.dec.v1.local.team-a.>"
    }


def test_each_right_gives_its_own_subjects() -> None:
    def entities(**rights: bool) -> set[str]:
        right = NamespaceRights(namespace="a", **rights)
        allowed = permissions_of_platform("platform x", "local", [right])
        return {s.partition(".v1.")[0] for s in allowed.publish}

    got = "JS.CORE.API.DIRECT.GET."
    assert entities(submit=True) == {"submit", f"{got}SUBMIT.submit"}
    assert entities(command=True) == {"cmd", f"{got}CMD.cmd"}
    assert entities(read=True) == {
        f"{got}{topic.stream}.{topic.entity}"
        for topic in TOPICS
        if "namespace" in topic.names and "platform" in topic.receivers
    }


def test_who_may_everywhere_has_what_a_platform_has_in_this_cluster() -> None:
    allowed = permissions_of_platform("platform x", "local", [EVERYWHERE])

    assert {"submit.v1.local.>", "cmd.v1.local.>"} <= set(allowed.publish)
    assert not {"submit.v1.*.*.*", "cmd.v1.*.*.*"} & set(allowed.publish)


@pytest.mark.parametrize("right", [ALL, EVERYWHERE])
def test_nothing_is_allowed_that_the_role_is_not(right: NamespaceRights) -> None:
    """Else nobody would import it, or somebody would who should not."""
    whole = permissions_of("platform")
    narrow = permissions_of_platform("platform x", "local", [right])

    for subject in narrow.publish:
        assert any(_covers(pattern, subject) for pattern in whole.publish), subject
    for subject in narrow.subscribe:
        if not subject.startswith("_INBOX."):
            assert any(_covers(p, subject) for p in whole.subscribe), subject
