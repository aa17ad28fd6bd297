"""Rights follow from who somebody is, and from what the API server lets it do."""

from __future__ import annotations

import pytest

from authcallout.errors import LoginRefusedError
from authcallout.grants import VERBS, check_agent, check_platform, questions, rights_of
from authcallout.login import NODE_EXTRA, AgentLogin, Identity, PlatformLogin
from runtime.users import NamespaceRights

AGENT = "system:serviceaccount:moorings-system:nodeagent"


def identity(username: str = AGENT, node: str = "n1") -> Identity:
    return Identity(username=username, extra={NODE_EXTRA: (node,)} if node else {})


def test_an_agent_is_its_service_account_on_its_node() -> None:
    check_agent(AgentLogin("n1"), identity(), (AGENT,))
    for login, who, reason in (
        (AgentLogin("n2"), identity(), "on node n1, not on n2"),
        (AgentLogin("n1"), identity(node=""), "no pod on a node"),
        (AgentLogin("n1"), identity("system:serviceaccount:x:nodeagent"), "is no"),
    ):
        with pytest.raises(LoginRefusedError, match=reason):
            check_agent(login, who, (AGENT,))


def test_a_platform_is_who_it_says() -> None:
    check_platform(PlatformLogin(AGENT, ("a",)), identity())
    with pytest.raises(LoginRefusedError, match="not of jane"):
        check_platform(PlatformLogin("jane", ("a",)), identity())


def test_each_namespace_has_the_rights_that_gangs_have_there() -> None:
    login = PlatformLogin("jane", ("a", "b", "c"))
    yes = {("create", "a"), ("list", "b"), ("watch", "b"), ("delete", "c")}
    answers = {q: tuple(q) in yes for q in questions(login)}

    assert len(answers) == 3 * len(VERBS)
    assert rights_of(login, answers) == (
        NamespaceRights(namespace="a", submit=True),
        NamespaceRights(namespace="b", read=True),
        NamespaceRights(namespace="c", command=True),
    )


def test_all_namespaces_are_asked_about_as_such() -> None:
    """Who may in each of those that are there may not in those that will be."""
    login = PlatformLogin("jane", ("*",))
    asked = tuple(questions(login))

    assert {question.namespace for question in asked} == {""}
    assert rights_of(login, dict.fromkeys(asked, True)) == (
        NamespaceRights(namespace=None, submit=True, command=True, read=True),
    )


def test_a_namespace_without_rights_refuses_all_of_it() -> None:
    """Whoever asks for it shall learn that, not find out message by message."""
    login = PlatformLogin("jane", ("a", "b"))
    answers = {q: q.namespace == "a" for q in questions(login)}
    with pytest.raises(LoginRefusedError, match="in namespace b"):
        rights_of(login, answers)


def test_to_list_without_watching_is_not_to_read() -> None:
    login = PlatformLogin("jane", ("a",))
    answers = {q: q.verb == "list" for q in questions(login)}
    with pytest.raises(LoginRefusedError):
        rights_of(login, answers)
