"""Fixtures for everybody: a real nats-server, a real Kubernetes control plane."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import structlog

from runtime.bus.bus import Bus
from runtime.wire import BusSettings
from tests.lab import lanes, soak
from tests.lab.controlplane import programs, server
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import NEWEST, RELEASE, Options, of_release
from tests.lab.go_program import NO_GO, REQUIRED
from tests.lab.kueue import programs as kueue
from tests.lab.nats_server import LabServer
from tests.lab.node import programs as node_programs
from tests.oracles.upstream_oracle import built


@pytest.fixture(autouse=True)
def _logs_stay_as_they_were() -> Iterator[None]:
    """A command sets up the logs of its process; the next test has its own."""
    was_configured = structlog.is_configured()
    yield
    if structlog.is_configured() and not was_configured:
        structlog.reset_defaults()


def pytest_configure() -> None:
    """Say that there is no event loop yet, how many examples are drawn, and Ctrl-C.

    Otherwise pytest-asyncio asks for the current loop, which makes one that nobody
    closes and a warning in whatever test comes next (Python < 3.14).
    """
    asyncio.set_event_loop(None)
    soak.load_profile()
    lanes.take_ports()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So it is behind a shell's `&`, and would be for all programs of the tests.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave the long forms to `make soak`, and begin with what takes long."""
    left = [item for item in items if not soak.SOAK and item.get_closest_marker("soak")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
    lanes.in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Share out what runs side by side."""
    return lanes.schedule(config, log)


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that all tests of the session share."""
    server = LabServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[LabServer]:
    """A server of the test's own, to be killed and started again."""
    server = LabServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def bus(nats_server: LabServer) -> AsyncIterator[Bus]:
    """A bus with all streams on a fresh server."""
    async with Bus.open(BusSettings(name="test", servers=(nats_server.url,))) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
        yield bus


@pytest.fixture(scope="session")
def upstream_oracle() -> Path:
    """Upstream's allocator as a program; CI requires it, elsewhere it may lack."""
    program = built("oracle")
    if program is None and os.environ.get(REQUIRED) == "1":
        pytest.fail(NO_GO)
    if program is None:
        pytest.skip(NO_GO)
    return program


@pytest.fixture(scope="session")
def control_plane_programs() -> Path:
    """The folder of Kubernetes' programs; CI requires it, elsewhere it may lack."""
    return _required(programs.built(release()), programs.NO_CONTROL_PLANE)


@pytest.fixture(scope="session")
def kubelet_programs() -> Path:
    """The folder with kubelet; CI requires it, elsewhere it may lack."""
    return _required(node_programs.kubelet_built(), node_programs.NO_KUBELET)


@pytest.fixture(scope="session")
def runtime_programs() -> Path:
    """The folder with kubelet and containerd, where a node can run containers."""
    return _required(node_programs.runtime_built(), node_programs.NO_RUNTIME)


@pytest.fixture(scope="session")
def kueue_programs() -> Path:
    """The folder with Kueue's manager, where it was built; `make soak` builds it."""
    folder = kueue.built()
    if folder is None:
        pytest.skip(kueue.NO_KUEUE)
    return folder


def _required(folder: Path | None, lacks: str) -> Path:
    if folder is None and os.environ.get(programs.REQUIRED) == "1":
        pytest.fail(lacks)
    if folder is None:
        pytest.skip(lacks)
    return folder


@pytest.fixture(scope="session")
def control_plane(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[server.ControlPlane]:
    """A control plane that all tests of the session share; nobody kills its parts."""
    folder, options = tmp_path_factory.mktemp("controlplane"), of_release(release())
    with server.running(control_plane_programs, folder, options) as running:
        yield running


def release() -> str:
    """Tell which release of Kubernetes the shared control plane is."""
    return os.environ.get(RELEASE, NEWEST)


OwnControlPlane = Callable[[Options], server.ControlPlane]


@pytest.fixture
def own_control_plane(
    control_plane_programs: Path, tmp_path: Path
) -> Iterator[OwnControlPlane]:
    """Starts a control plane of the test's own, to be set up or killed as it likes."""
    with contextlib.ExitStack() as running:

        def start(options: Options) -> server.ControlPlane:
            folder = tmp_path / f"controlplane-{secrets.token_hex(2)}"
            folder.mkdir()
            block = server.running(control_plane_programs, folder, options)
            return running.enter_context(block)

        yield start


@pytest.fixture
async def kube(control_plane: server.ControlPlane) -> AsyncIterator[Kube]:
    """The admin of the shared control plane."""
    async with control_plane.client() as kube:
        yield kube


@pytest.fixture
async def namespace(kube: Kube) -> AsyncIterator[str]:
    """A namespace of the test's own on the shared control plane.

    Names of what has no namespace (nodes, classes, drivers) should begin with it.
    """
    async with kube.namespace() as name:
        yield name
