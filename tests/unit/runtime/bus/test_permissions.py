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


def test_the_server_soon_forgets_requests_that_nobody_answers() -> None:
    """Its default is 2 minutes, and what it remembers takes memory and time."""
    exported = re.findall(r"service: \"((?:relay|put)\.\S+)\", (.*) }", _exports())
    assert exported
    for subject, options in exported:
        assert options.endswith(', response_threshold: "6s"'), subject


def _exports() -> str:
    """Give the services of CORE, as written."""
    return server_configuration().partition("exports: [")[2].partition("]\n    imp")[0]


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
