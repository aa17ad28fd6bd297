"""Who may say and hear what: no more than the table of topics gives."""

from __future__ import annotations

import pytest

from runtime.bus.permissions import permissions_of, server_configuration
from runtime.users import USERS


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


def test_the_configuration_holds_no_password() -> None:
    """Each is a variable of the server's environment."""
    text = server_configuration()
    for user in USERS:
        assert f"password: ${user.upper()}_PASSWORD" in text
