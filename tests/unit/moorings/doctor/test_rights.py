"""The doctor asks for just the rights that k8s/base grants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorings.doctor.facts import Right
from moorings.doctor.rights import ACCOUNTS, FORBIDDEN, PEOPLE, SERVICES, Persona
from tests.lab.personas import ANYWHERE, BY_NAME, OUR_DRIVERS, SYSTEM, TEAM
from tests.lab.personas import Persona as Granted

ROLES = {
    "moorings-gang-author": "author",
    "moorings-gang-viewer": "viewer",
    "moorings-deviceclass-viewer": "class-viewer",
    "moorings-cluster-operator": "operator",
    "moorings-device-admin": "device-admin",
}


def granted(persona: Granted) -> Iterator[Right]:
    """List what a persona of the manifests has, but what it may say for drivers."""
    for where, table in persona.may.items():
        for what, text in table.items():
            resource, _, group = what.partition(".")
            for rule in text.split(";"):
                verbs, _, names = rule.partition(" = ")
                for verb in verbs.split():
                    for name in names.split() or [""]:
                        place = "" if where == ANYWHERE else where
                        if name not in OUR_DRIVERS.split():
                            yield Right(verb, group, resource, place, name)


@pytest.mark.parametrize("persona", [*SERVICES, *PEOPLE], ids=lambda one: one.name)
def test_asks_for_what_the_manifests_grant(persona: Persona) -> None:
    """All of it and nothing else: `test_rbac.py` holds the manifests to the same."""
    manifest = BY_NAME[ROLES.get(persona.name, persona.name)]
    asked = set(persona.list_rights(SYSTEM, TEAM))
    assert asked == set(granted(manifest))
    if persona in SERVICES:
        assert not asked & set(FORBIDDEN)


def test_every_account_and_role_is_asked_about() -> None:
    accounts = {name for name, one in BY_NAME.items() if "serviceaccount" in one.user}
    assert accounts == set(ACCOUNTS)
    assert {persona.name for persona in PEOPLE} == set(ROLES)
    without = accounts - {persona.name for persona in SERVICES}
    assert all(not BY_NAME[name].may for name in without)


def test_a_right_is_named_as_people_read_it() -> None:
    lease = Right("get", "coordination.k8s.io", "leases", "a", "b")
    assert str(lease) == "get leases.coordination.k8s.io b in a"
    assert str(Right("list", "", "pods")) == "list pods"
