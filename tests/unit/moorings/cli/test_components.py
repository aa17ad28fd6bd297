"""What the commands that run something say of themselves, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from moorings.cli.components import up
from moorings.cli.services import list_variables
from moorings.errors import UsageError


class _Config(Struct, kw_only=True):
    node: str
    names: tuple[str, ...] = ("a", "b")
    lease_s: float = 3.0


def test_variables_are_listed_with_their_defaults() -> None:
    """As they would be written; one without a default is needed."""
    assert list(list_variables(_Config, "X")) == [
        "X_NODE (needed)",
        "X_NAMES=a,b",
        "X_LEASE_S=3.0",
    ]


def test_options_of_a_cluster_need_one() -> None:
    """Before anything is started."""
    with pytest.raises(UsageError, match="--kubeconfig"):
        up(context="here")
    with pytest.raises(UsageError, match="--kubeconfig"):
        up(own_class=["gpu"])


def test_a_cluster_has_its_own_objects() -> None:
    """A folder of manifests and files of classes are for where there is none."""
    with pytest.raises(UsageError, match="--folder and -f"):
        up(kubeconfig=Path("config"), folder=Path("manifests"))
    with pytest.raises(UsageError, match="--folder and -f"):
        up(kubeconfig=Path("config"), filename=["classes.yaml"])
