"""How tests are shared out to lanes that run side by side (pytest -n N).

A module is one lane's, so that what its tests share (a stack, certificates, counts of
what was met) is made once; so are all modules that need k8s/base installed. Whatever
takes long begins first, so that no lane is left alone with it.
"""

from __future__ import annotations

import os
from pathlib import PurePath

import pytest
from xdist.scheduler import LoadFileScheduling

from moorings.local import process

INSTALLED = (
    "test_admission",
    "test_admission_authors",
    "test_admission_kueue",
    "test_admission_publisher",
    "test_admission_slices",
    "test_authcallout",
    "test_bus_rotation",
    "test_doctor",
    "test_gang_objects",
    "test_kustomize",
    "test_rbac",
    "test_rbac_writes",
)
"""Modules with the fixture `installed`: a control plane apart."""
LONGEST = (
    "test_cli",
    "test_kubelet",
    "test_cluster_kills",
    "test_kubernetes_metrics",
    "test_kubernetes_lease",
    "test_upgrade",
    "test_console",
    "test_up_kills",
    "test_floods",
    "test_subscribers",
)
"""Modules that take longest alone, a minute or so."""
FOLDERS = ("e2e", "integration", "property", "unit")
"""Those whose modules take longer come first."""
MOST_LANES = 8
FIRST_LANE = "MOORINGS_FIRST_LANE"
"""The variable that says how many lanes another run beside this one may have."""
PORTS = range(12_000, 20_000)
"""Those of all lanes; what `moorings up` chooses is above."""


def take_ports() -> None:
    """Choose free ports among those of our lane alone.

    Between the choice of a port and its use another lane might have taken it, and so
    might a stack that some test starts, while a program of ours is down.
    """
    lane = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if lane:
        number = int(os.environ.get(FIRST_LANE, "0")) + int(lane)
        process._PORTS = PORTS[number % MOST_LANES :: MOST_LANES]


def schedule(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Share out what is collected, in the order of `in_order`."""
    config.option.loadscopereorder = False
    lanes = LoadFileScheduling(config, log)
    lanes._split_scope = _piece_of
    return lanes


def _piece_of(nodeid: str) -> str:
    """Name the piece of work that a test belongs to: its module or an installation."""
    file = nodeid.split("::", 1)[0]
    return "installed" if PurePath(file).stem in INSTALLED else file


def in_order(items: list[pytest.Item]) -> None:
    """Put first what takes long; the same in every lane.

    Raises:
        UsageError: a module needs an installation, and `INSTALLED` does not know it.
    """
    for item in items:
        needs = "installed" in getattr(item, "fixturenames", ())
        if needs and item.path.stem not in INSTALLED:
            raise pytest.UsageError(f"{item.path}: name it in {__file__}")
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Tell how early: an installation, the longest, then folder by folder."""
    if item.path.stem in INSTALLED:
        return 0
    if item.path.stem in LONGEST:
        return 1
    folder = next((name for name in FOLDERS if name in item.path.parts), FOLDERS[-1])
    return 2 + FOLDERS.index(folder)
