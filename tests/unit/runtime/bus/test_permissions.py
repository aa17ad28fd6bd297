"""Who may say and hear what: no more than the table of topics gives."""

from __future__ import annotations

import re

import pytest

from runtime.bus.permissions import permissions_of, server_configuration
from runtime.users import USERS, logins_of, password_variable


@pytest.mark.parametrize("user", USERS)
def test_nobody_may_use_every_subject(user: str) -> None:
    """Neither all subjects nor all of JetStream's."""
    allowed = permissions_of(user)
    for subjects in (allowed.publish, allowed.subscribe):
        assert subjects == tuple(sorted(set(subjects)))
        assert not {">", "*", "$JS.>", "$JS.API.>", "JS.CORE.API.>"} & set(subjects)


def test_only_the_solver_decides_and_only_the_publisher_confirms() -> None:
    """A stranger's decision would be written by our publisher."""
    for entity, author in (("dec", "solver"), ("conf", "publisher")):
        authors = {
            user
            for user in USERS
            if any(s.startswith(f"{entity}.") for s in permissions_of(user).publish)
        }
        assert authors == {author}


def test_the_server_remembers_no_request_of_outsiders() -> None:
    """It would, until there is an answer, of each that goes to a service of CORE."""
    accounts = server_configuration().partition("\naccounts {")[2]
    core, *others = re.split(r"\n  (?=[A-Z]+ {)", accounts)[1:]
    assert "exports: [" not in core
    for account in others:
        assert "exports: [" in account
        assert "imports: [" not in account


def test_services_reach_inboxes_and_news_of_outsiders_only() -> None:
    exported = re.findall(r"{ service: \"(\S+)\",", server_configuration())
    assert set(exported) == {"_INBOX.>", "evt.dec.v1.>", "evt.solved.v1.>"}


def test_the_configuration_holds_no_password() -> None:
    """Each is a variable of a file beside it; no two are one."""
    text = server_configuration()
    named = re.findall(r"user: (\S+), password: (\S+),", text)

    assert len({password for _, password in named}) == 2 * len(USERS)
    assert named == [
        (login, f"${password_variable(login)}")
        for user in USERS
        for login in logins_of(user)
    ]
