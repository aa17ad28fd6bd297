"""The way to a cluster is read, or what is wrong with it named, before all else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from moorings.errors import BadInputError
from moorings.local.cluster import (
    ClusterAccess,
    _check_nothing_installed,
    read_access,
)
from runtime.kube.errors import NotFoundError, PermissionDeniedError
from runtime.kube.kinds import Kind

ACCESS = ClusterAccess(kubeconfig=Path("config"), context="one", server="https://one")

CONFIG = """
current-context: one
contexts:
- {name: one, context: {cluster: first}}
- {name: two, context: {cluster: second}}
clusters:
- {name: first, cluster: {server: "https://first"}}
"""


def test_a_context_names_its_server(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    access = read_access(file)
    assert (access.context, access.server) == ("one", "https://first")
    assert access.kubeconfig == file.resolve()


@pytest.mark.parametrize(
    ("text", "context", "reason"),
    [
        (CONFIG, "three", "has no context 'three'; it has one, two"),
        (CONFIG, "two", "context 'two' is of cluster 'second', which has no server"),
        (CONFIG.replace("current-context: one", ""), "", "choose one with --context"),
        ("{}", "", "is not a kubeconfig"),
        ("[1]", "", "is not a kubeconfig"),
        ("a: [", "", "while parsing"),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path, text: str, context: str, reason: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(BadInputError, match=reason) as caught:
        read_access(file, context)
    assert "\n" not in str(caught.value)


class InstalledApi:
    """An API server that gives Deployments by name, or refuses to."""

    def __init__(self, **replicas: int | None) -> None:
        self._replicas = replicas

    async def get(self, kind: Kind, key: str) -> dict[str, Any]:
        """Give a Deployment; None is one that may not be read."""
        name = key.rpartition("/")[2]
        if name not in self._replicas:
            raise NotFoundError(f"get {kind.name} {key}", "not found")
        replicas = self._replicas[name]
        if replicas is None:
            raise PermissionDeniedError(f"get {kind.name} {key}", "forbidden")
        return {"spec": {"replicas": replicas}}


@pytest.mark.parametrize("replicas", [{}, {"publisher": None}, {"publisher": 0}])
async def test_nothing_is_installed_as_far_as_may_be_read(
    replicas: dict[str, int | None],
) -> None:
    await _check_nothing_installed(ACCESS, cast("Any", InstalledApi(**replicas)))


async def test_an_installed_service_is_named_with_the_way_to_stop_it() -> None:
    both = InstalledApi(publisher=2, solver=1)
    with pytest.raises(BadInputError) as caught:
        await _check_nothing_installed(ACCESS, cast("Any", both))
    assert "publisher (2 replicas) and solver (1 replica) would" in str(caught.value)
    assert "scale deployment publisher solver --replicas=0" in str(caught.value)


def test_a_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        read_access(tmp_path / "none")
