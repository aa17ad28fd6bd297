"""The sockets on which kubelet finds a driver, from start to end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from nodeagent.errors import NodeAgentError
from nodeagent.kubelet.plugin import Plugin
from nodeagent.kubelet.sockets import SocketPaths, remove, remove_stale
from nodeagent.prepare import files

_GRACE_S = 5.0
_MODE = 0o600


class SocketError(NodeAgentError):
    """A socket that cannot be opened."""


@contextlib.asynccontextmanager
async def serve_plugin(plugin: Plugin, paths: SocketPaths) -> AsyncIterator[None]:
    """Answer kubelet while the block runs; then leave no socket behind.

    The plugin's own socket is there before the one by which kubelet learns of it. What
    is being prepared is finished before the end.

    Raises:
        SocketError: a path is too long, or its folder may not be written.
    """
    if paths.too_long is not None:
        raise SocketError(f"{paths.too_long}: over 107 bytes, which no socket can have")
    try:
        for path in (paths.registration, paths.plugin):
            files.make_folder(path.parent, 0o750)
        await asyncio.to_thread(remove_stale, paths, plugin.driver)
    except OSError as error:
        raise SocketError(str(error)) from error
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(plugin.make_handlers()))
    try:
        for path in (paths.plugin, paths.registration):
            server.add_insecure_port(f"unix:{path}")
            path.chmod(_MODE)
        await server.start()
    except (RuntimeError, OSError) as error:
        await server.stop(None)
        raise SocketError(f"{plugin.driver}: {error}") from error
    try:
        yield
    finally:
        # kubelet sees the end of a driver by its registration socket.
        remove(paths.registration)
        await server.stop(_GRACE_S)
        remove(paths.plugin)
