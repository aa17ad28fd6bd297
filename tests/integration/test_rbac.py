"""Who may do what on a cluster where k8s/base is installed: every yes and every no.

The tables are the whole of it: what a persona may do beyond them, anywhere, is a
failure. Where the API server looks closer than RBAC: `test_rbac_writes.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.lab.controlplane.client import Kube
from tests.lab.personas import ANYWHERE, BY_NAME, OTHERS, SYSTEM, TEAM, Persona, Table

pytestmark = pytest.mark.usefixtures("bound")

SENSITIVE = (
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "create pods",
    "create pods/exec",
    "create serviceaccounts/token",
    "get secrets",
    "impersonate users",
    "update nodes",
)
"""Asked by name too: what would be the end of all other limits."""


def _cells(table: Table) -> Iterator[tuple[str, str, str]]:
    """Go through (verb, resource, name) of a table; the name is mostly empty."""
    for resource, text in table.items():
        for rule in text.split(";"):
            verbs, _, names = rule.partition(" = ")
            for verb in verbs.split():
                for name in names.split() or [""]:
                    yield verb, resource, name


def _expected(persona: Persona, namespace: str) -> set[tuple[str, str, str]]:
    tables = (persona.may.get(where, {}) for where in (ANYWHERE, namespace))
    return {cell for table in tables for cell in _cells(table)}


async def _rules(admin: Kube, user: str, namespace: str) -> set[tuple[str, str, str]]:
    """Ask the API server for all that a user may do in a namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {"namespace": namespace},
    }
    async with admin.acting_as(user) as somebody:
        answer = await somebody.create(review)
    return {
        (verb, f"{resource}.{group}".rstrip("."), name)
        for rule in answer["status"]["resourceRules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
    }


async def _allowed(
    admin: Kube, user: str, namespace: str, cell: tuple[str, str, str]
) -> bool:
    verb, what, name = cell
    resource, _, group = what.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    answer = await admin.create(review)
    allowed: bool = answer["status"]["allowed"]
    return allowed


@pytest.mark.parametrize("name", BY_NAME)
async def test_persona_may_do_what_its_table_says_and_nothing_else(
    admin: Kube, name: str
) -> None:
    """In the namespace where it is bound, in Moorings' own and in any other."""
    persona = BY_NAME[name]
    anybody = await _rules(admin, "system:serviceaccount:team-b:stranger", OTHERS)
    for namespace in (SYSTEM, TEAM, OTHERS):
        found = await _rules(admin, persona.user, namespace) - anybody
        assert found == _expected(persona, namespace), namespace


@pytest.mark.parametrize("name", BY_NAME)
async def test_authorizer_says_yes_and_no_as_the_table(admin: Kube, name: str) -> None:
    """What holds everywhere is asked at cluster scope, where binding is checked."""
    persona = BY_NAME[name]
    asked = {
        ("" if where == ANYWHERE else where, cell)
        for where, table in persona.may.items()
        for cell in _cells(table)
    }
    denied = [(verb, what, "") for verb, what in map(str.split, SENSITIVE)]
    answers = await asyncio.gather(
        *(_allowed(admin, persona.user, *question) for question in sorted(asked))
    )
    refusals = await asyncio.gather(
        *(
            _allowed(admin, persona.user, where, cell)
            for cell in denied
            for where in ("", SYSTEM, TEAM)
        )
    )

    assert all(answers)
    assert not any(refusals)
